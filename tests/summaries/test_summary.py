"""Summaries, and their cells of public values: exact, mergeable, read back as written."""

import itertools
import json

import pytest

from ldp_client.documents.errors import SummaryError
from schemas import Report, Study
from summaries import Summary, cell_summaries, summarize
from summaries.cells import keeps_cells
from tests import studies
from tests.kit.errors import raises
from tests.kit.reporting import reports_of
from tests.summaries.engines_data import FEW, REGION, REPORTS, RIGHT, STUDY, YEARS

WHOLE = summarize(STUDY, REPORTS)


def plain(parts):
    return {name: part.to_document() for name, part in parts.items()}


@pytest.mark.parametrize("sample_one_question", [False, True])
def test_each_cell_has_the_summary_of_its_reports(sample_one_question):
    study = Study({**FEW.document, "sample_one_question": sample_one_question})
    regions = [REGION["choices"][n % 3 == 0] for n in range(150)]
    reports = reports_of(study, [{"ever": True, "occupation": "worker", "region": one} for one in regions])
    summary = summarize(study, reports)
    assert set(summary.cells) == {("north",), ("south",)}
    for (region,), parts in summary.cells.items():
        some = [report for report in reports if report.public["region"] == region]
        assert plain(parts) == plain(summarize(study, some).questions)
    bare = Study({name: value for name, value in study.document.items() if name != "public"})
    without = [Report(one.id, bare.id, 1, bare.digest, one.payloads) for one in reports]
    assert plain(summary.questions) == plain(summarize(bare, without).questions)


def test_parts_add_up_and_are_read_back():
    parts = [summarize(STUDY, REPORTS[start::3]) for start in range(3)]
    for first, second, third in itertools.permutations(parts):
        assert first.merge(second).merge(third).to_json() == RIGHT
        assert first.merge(second.merge(third)).to_json() == RIGHT
    assert Summary.empty(STUDY).merge(WHOLE).to_json() == RIGHT
    assert Summary.from_json(RIGHT, STUDY).to_json() == RIGHT
    given = {cell: plain(parts) for cell, parts in WHOLE.cells.items()}
    for evidence in (WHOLE, REPORTS):
        assert {cell: plain(parts) for cell, parts in cell_summaries(STUDY, evidence).items()} == given


def test_summary_without_cells_is_read_but_not_split():
    document = json.loads(RIGHT)
    del document["public_cells"]
    totals = Summary.from_json(json.dumps(document), STUDY)
    assert totals.cells is None
    assert totals.merge(summarize(STUDY, REPORTS[:3])).cells is None
    with raises(SummaryError, "summary.cells_invalid"):
        cell_summaries(STUDY, totals)
    with raises(SummaryError, "summary.merge_of_other_study"):
        totals.merge(Summary.empty(FEW))


EVER = "public_cells[0].questions.ever"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda whole, _: whole["hours"]["values"].__setitem__(0, 1.5), "questions.hours.values"),
        (lambda whole, _: whole.pop("hours"), "questions"),
        (lambda whole, _: whole["hours"].update(n=4), "questions.hours.values"),
        (lambda whole, _: whole["ever"].update(values=[-1, 301]), "questions.ever.values"),
        (lambda whole, _: whole["rating"]["values"].__setitem__(0, 1 << 50), "questions.rating.values"),
        (lambda whole, _: whole["rating"]["tails"].__setitem__(0, -1), "questions.rating.tails"),
        (lambda whole, _: whole["rating"]["tails"].__setitem__(1, 301), "questions.rating.tails"),
        (lambda whole, _: whole["rating"]["tails"].pop(), "questions.rating.tails"),
        (lambda _, cells: cells.pop(), "public_cells"),
        (lambda _, cells: cells.append(cells[0]), "public_cells[10].public"),
        (lambda _, cells: cells[0].update(public=["east", "0"]), "public_cells[0].public"),
        (lambda _, cells: cells[0]["questions"].pop("ever"), "public_cells[0].questions"),
        (lambda _, cells: cells[0]["questions"]["ever"].update(n=0), f"{EVER}.values"),
        (lambda _, cells: cells[0]["questions"]["ever"].update(values=[1]), f"{EVER}.values"),
    ],
)
def test_bad_summaries_name_their_field(change, field):
    document = json.loads(RIGHT)
    change(document["questions"], document["public_cells"])
    with pytest.raises(SummaryError) as caught:
        Summary.from_json(json.dumps(document), STUDY)
    assert caught.value.field == field


def test_too_many_cells_are_left_out():
    """The total is right; analyses by cell need the reports."""
    many = {**YEARS, "bounds": ["0", "4096"]}
    study = Study(studies.document(studies.YES_NO, public=[many]))
    assert not keeps_cells(study)
    reports = reports_of(study, [{"ever": True, "years": n} for n in range(50)])
    summary = summarize(study, reports)
    assert (summary.questions["ever"].n, summary.cells) == (50, None)
    with raises(SummaryError, "summary.cells_invalid", "097"):
        cell_summaries(study, summary)
    assert len(cell_summaries(study, reports)) == 50
    wide = Study(studies.document({**studies.CHOICE, "choices": {"count": 5000}}, public=[REGION]))
    assert keeps_cells(wide)
    assert not keeps_cells(Study({**wide.document, "public": [{**YEARS, "bounds": ["0", "999"]}]}))
