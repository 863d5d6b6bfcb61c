"""The input of analyses with public fields: summaries of each cell's reports, or columns of all reports."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, SummaryError
from schemas import Study
from summaries.cells import MOST_CELLS, Cell, by_cell, keeps_cells
from summaries.reading import Reports, evidence_of
from summaries.reducing import CHUNK, check_study, good_reports, reduced
from summaries.summary import CELLS, QuestionSummary, Summary


def cell_summaries(study: Study, evidence: Reports) -> dict[Cell, Mapping[str, QuestionSummary]]:
    """Give a summary of each question for each cell that has reports.

    Args:
        study: the document that was answered.
        evidence: reports, each of which counts once, as `fit` takes them, or a Summary of them that is kept
            by cell.

    Returns:
        {values of the public fields, in the study's order: {question id: QuestionSummary}}.

    Raises:
        InputError: the study has no public fields.
        SummaryError: the summary is of another document, or is not kept by cell: take the reports.
        ReportError: as `summarize` raises it.
    """
    _refuse_without_fields(study)
    given = evidence_of(study, evidence)
    if isinstance(given, Summary):
        return dict(_kept_cells(study, given))
    mechanisms = mechanisms_of(study)
    found: dict[Cell, Mapping[str, QuestionSummary]] = {}
    reports = good_reports(study, given)
    while chunk := list(islice(reports, CHUNK)):
        for cell, some in by_cell(study, chunk).items():
            parts = reduced(mechanisms, some)
            before = found.get(cell)
            found[cell] = {name: before[name].merge(parts[name]) for name in parts} if before else parts
    return found


def _refuse_without_fields(study: Study) -> None:
    check_study(study)
    if not study.public:
        raise InputError(
            f"study {study.id} has no public fields: its reports have no columns but payloads",
            code="summary.no_public_fields",
        )


def _kept_cells(study: Study, summary: Summary) -> Mapping[Cell, Mapping[str, QuestionSummary]]:
    if summary.digest != study.digest:
        raise SummaryError("digest", "it is of another study document", code="summary.other_study")
    if summary.cells is not None:
        return summary.cells
    problem = "was not kept by cell"
    if not keeps_cells(study):
        problem = f"has no cells, as {study.cells:,} are too many, or too large: {MOST_CELLS:,} is the most"
    raise SummaryError(
        CELLS, f"the summary {problem}: take the reports themselves", code="summary.cells_invalid"
    )
