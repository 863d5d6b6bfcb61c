"""Weigh by a census whose numbers are codes, or of people whom the study does not ask, and have it be ok."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from inference.analyses.assembling import assemble
from inference.analyses.joining import joined
from inference.analyses.population import Population, left_out_of, notes_over, people_of
from inference.analyses.reports import table_of_reports
from inference.analyses.table import Table, known_channel, table_of
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies

AGES = {"id": "age", "bounds": ["18", "99"], "step": "1"}


def ages(low: int = 20, high: int = 79, **bounds: tuple[float, float]) -> Table:
    age = np.arange(300) % (high - low + 1) + float(low)
    hours = np.arange(300) % 7 + 0.0
    private = known_channel("ever", ("no", "yes"), np.arange(300) // 3 % 2, [[0.9, 0.1], [0.1, 0.9]])
    table = table_of(pd.DataFrame({"age": age, "hours": hours}), [private])
    return replace(table, bounds=bounds or {"age": (18.0, 99.0)})


def said(table: Table, formula: str, **census: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Reasons of the verdict's knowledge, and notes."""
    over = Population(census=pd.DataFrame(census))
    analysis = assemble(table, formula)
    people = people_of(analysis, table, over)
    return left_out_of(analysis, people, over), notes_over(analysis, people, over)


@pytest.mark.parametrize(
    ("census", "where"),
    [
        ([1, 2, 3, 4, 5, 6, 7], "age is 1 to 7 in 7 of 7 rows"),
        ([1940, 1975, 2001], "age is 1940 to 2001 in 3 of 3 rows"),
        ([17, 40, 60], "age is 17 to 17 in 1 of 3 rows"),
    ],
)
def test_numbers_beyond_the_studys_bounds_are_refused(census: list[int], where: str) -> None:
    """Ages in bands of ten years, coded 1 to 7, gave a share far from the truth, and the fit was ok."""
    with pytest.raises(InputError, match=f"the census: {where}, and the study lists 18 to 99 alone"):
        said(ages(), "ever ~ age", age=census, count=[500 + place for place in range(len(census))])


def test_rows_of_nobody_and_the_bounds_themselves_are_taken() -> None:
    reasons, _ = said(ages(), "ever ~ age", age=[18, 40, 99, 5], count=[1, 900, 1, 0])
    assert reasons == ()


def test_bounds_are_those_of_the_study_and_of_all_waves_together() -> None:
    study = Study(studies.document(studies.YES_NO, public=[AGES]))
    mechanisms = mechanisms_of(study)
    reports = [perturb_answers(study, mechanisms, {"ever": True, "age": 18 + one}) for one in range(9)]
    assert table_of_reports(study, reports, ["ever", "age"]).bounds == {"age": (18.0, 99.0)}
    waves = {"1": ages(), "2": ages(age=(16.0, 80.0))}
    assert joined(waves, "wave").bounds == {"age": (16.0, 99.0)}
    assert joined({**waves, "3": replace(ages(), bounds={})}, "wave").bounds == {}


def test_few_people_beyond_all_reports_are_noted_and_most_are_in_the_verdict() -> None:
    reasons, notes = said(ages(), "ever ~ age", age=[40.0, 90.0], count=[600, 400])
    assert reasons == ()
    assert "400 of 1,000 people have age beyond all reports (20 to 79)" in notes[0]
    reasons, notes = said(ages(), "ever ~ age", age=[40.0, 90.0], count=[400, 600])
    assert len(notes) == 1
    assert "600 of 1,000 people of the census lie beyond all reports in age" in reasons[0]


def test_people_beyond_in_one_number_or_another_are_counted_once() -> None:
    """Each number alone is beyond for 40 %, and both together for 80 % of the people."""
    census = {"age": [90.0, 40.0, 40.0], "hours": [3.0, 60.0, 3.0], "count": [400, 400, 201]}
    reasons, notes = said(ages(), "ever ~ age + hours", **census)
    assert len(notes) == 2
    assert "800 of 1,001 people of the census lie beyond all reports in age, hours" in reasons[0]
    assert said(ages(), "ever ~ age", **census)[0] == ()
