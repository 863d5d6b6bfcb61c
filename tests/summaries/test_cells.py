"""Summaries by cell of public values: exact, mergeable, read back as written, and given to analyses."""

import itertools
import json

import numpy as np
import pytest

from ldp_client.documents.errors import InputError, SummaryError
from schemas import Report, Study
from summaries import Summary, cell_summaries, summarize
from summaries.cells import keeps_cells
from tests import studies
from tests.kit import reporting
from tests.kit.errors import raises

REGION = {"id": "region", "choices": ["north", "south", "west"]}
AGE = {"id": "age", "bounds": ["18", "20"], "step": "0.5"}
STUDY = Study(studies.document(studies.YES_NO, studies.CHOICE, studies.NORMAL, public=[REGION, AGE]))
ANSWERS = {"ever": True, "occupation": "worker", "weight": 30}


def reports_of(study, count, seed=1):
    random, answers = np.random.default_rng(seed), {one.id: ANSWERS[one.id] for one in study.questions}
    values = [
        {one.id: one.value(int(random.integers(one.size))) for one in study.public} for _ in range(count)
    ]
    return reporting.reports_of(study, [answers | own for own in values])


REPORTS = reports_of(STUDY, 200)
# Somebody in each of a few cells alone.
FEW = [report for report in REPORTS if report.public["age"] == "18"]


def plain(parts):
    return {name: part.to_document() for name, part in parts.items()}


@pytest.mark.parametrize("sample_one_question", [False, True])
def test_each_cell_has_the_summary_of_its_reports(sample_one_question):
    study = Study({**STUDY.document, "sample_one_question": sample_one_question})
    reports = reports_of(study, 150)
    summary = summarize(study, reports)
    by_hand = {}
    for report in reports:
        by_hand.setdefault((report.public["region"], report.public["age"]), []).append(report)
    assert set(summary.cells) == set(by_hand)
    for cell, some in by_hand.items():
        assert plain(summary.cells[cell]) == plain(summarize(study, some).questions)
    bare = Study({name: value for name, value in study.document.items() if name != "public"})
    without = [Report(one.id, bare.id, 1, bare.digest, one.payloads) for one in reports]
    assert plain(summary.questions) == plain(summarize(bare, without).questions)


def test_parts_add_up_and_are_read_back():
    whole = summarize(STUDY, REPORTS)
    parts = [summarize(STUDY, REPORTS[start::3]) for start in range(3)]
    for first, second, third in itertools.permutations(parts):
        assert first.merge(second).merge(third).to_json() == whole.to_json()
    assert Summary.from_json(whole.to_json(), STUDY).to_json() == whole.to_json()
    given = {cell: plain(parts) for cell, parts in whole.cells.items()}
    assert {cell: plain(parts) for cell, parts in cell_summaries(STUDY, whole).items()} == given
    assert {cell: plain(parts) for cell, parts in cell_summaries(STUDY, REPORTS).items()} == given


def test_summary_without_cells_is_read_but_not_split():
    document = json.loads(summarize(STUDY, REPORTS).to_json())
    del document["public_cells"]
    totals = Summary.from_json(json.dumps(document), STUDY)
    assert totals.cells is None
    assert totals.merge(summarize(STUDY, FEW)).cells is None
    with raises(SummaryError, "summary.cells_invalid"):
        cell_summaries(STUDY, totals)


EVER = "public_cells[0].questions.ever"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda cells: cells.pop(), "public_cells"),
        (lambda cells: cells.append(cells[0]), "public_cells[15].public"),
        (lambda cells: cells[0].update(public=["east", "18"]), "public_cells[0].public"),
        (lambda cells: cells[0]["questions"].pop("ever"), "public_cells[0].questions"),
        (lambda cells: cells[0]["questions"]["ever"].update(n=0), f"{EVER}.values"),
        (lambda cells: cells[0]["questions"]["ever"].update(values=[1]), f"{EVER}.values"),
    ],
)
def test_invalid_cells_are_rejected(change, field):
    document = json.loads(summarize(STUDY, REPORTS).to_json())
    change(document["public_cells"])
    with pytest.raises(SummaryError) as caught:
        Summary.from_json(json.dumps(document), STUDY)
    assert caught.value.field == field


def test_too_many_cells_are_left_out():
    """The total is right; analyses by cell need the reports."""
    study = Study(studies.document(studies.YES_NO, public=[{**AGE, "bounds": ["0", "4096"], "step": "1"}]))
    assert not keeps_cells(study)
    reports = reports_of(study, 50)
    summary = summarize(study, reports)
    assert (summary.questions["ever"].n, summary.cells) == (50, None)
    with raises(SummaryError, "summary.cells_invalid", "097"):
        cell_summaries(study, summary)
    assert sum(parts["ever"].n for parts in cell_summaries(study, reports).values()) == 50
    wide = Study(studies.document({**studies.CHOICE, "choices": {"count": 5000}}, public=[REGION]))
    assert keeps_cells(wide)
    large = {**AGE, "bounds": ["0", "999"], "step": "1"}
    assert not keeps_cells(Study({**wide.document, "public": [large]}))


def test_report_with_unlisted_public_value_is_rejected():
    report = Report.from_json(REPORTS[0].to_json())
    for public, field in (({"region": "east", "age": "18"}, "region"), ({"region": "north"}, "age")):
        report.public = public
        with raises(InputError, "reports.many_refused", f"public.{field}"):
            summarize(STUDY, [report])
