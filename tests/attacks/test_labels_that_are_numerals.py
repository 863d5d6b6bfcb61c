"""People are counted by a study's own labels, such as −1 or 1,5, which were refused as slips."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inference.analyses.assembling import assemble
from inference.analyses.population import Population, people_of
from inference.analyses.public_columns import as_taken
from inference.analyses.survey import read_frame
from inference.analyses.table import table_of
from inference.design.possible_reports import possible_of_study
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies
from tests.kit.channels import known_channel

FORCED = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]
LABELS = [["\u22121", "0", "1"], ["0,5", "1,5", "2"], ["1", "01", "2"], ["1 000", "2 000", "3"]]


@pytest.mark.parametrize("labels", LABELS)
def test_census_matches_labels_that_look_like_numbers(labels: list[str]) -> None:
    asked = pd.DataFrame({"mood": pd.Categorical(np.repeat(labels, 30), categories=labels)})
    said = np.arange(90) % 2
    table = table_of(asked, [known_channel("armed", ("no", "yes"), said, FORCED)])
    census = pd.DataFrame({"mood": labels, "count": [5, 6, 7]})
    frame, weights = people_of(assemble(table, "armed ~ mood"), table, Population(census=census))
    assert dict(zip(frame["mood"], weights, strict=True)) == dict(zip(labels, [5.0, 6.0, 7.0], strict=True))


@pytest.mark.parametrize("labels", LABELS)
def test_table_of_people_matches_number_like_labels(labels: list[str]) -> None:
    mood = {"id": "mood", "choices": labels}
    study = Study({**studies.document(studies.YES_NO), "public": [mood]})
    known = pd.DataFrame({"mood": labels, "count": [1, 1, 2]})
    possible = possible_of_study(study, "ever ~ mood", known)
    assert set(possible.table.public["mood"]) == set(labels)


def test_csv_of_people_matches_number_like_labels(tmp_path: Path) -> None:
    mood = {"id": "mood", "choices": LABELS[0]}
    study = Study({**studies.document(studies.YES_NO), "public": [mood]})
    path = tmp_path / "people.csv"
    path.write_text("mood,count\n\u22121,2\n0,3\n1,4\n", encoding="utf-8")
    possible = possible_of_study(study, "ever ~ mood", read_frame(str(path)))
    assert set(possible.table.public["mood"]) == set(LABELS[0])


@pytest.mark.parametrize("cells", [["\u22122", "0"], ["\u22121", "1,5"], ["\u22121", "1 000"], ["1", "01"]])
def test_unknown_number_like_label_is_refused(cells: list[str]) -> None:
    with pytest.raises(InputError):
        as_taken(pd.DataFrame({"mood": cells}), ["mood"], labels={"mood": ["\u22121", "0", "1"]})
