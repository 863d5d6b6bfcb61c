"""What analyses beside public fields read: summaries of each cell's reports, or columns of all reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, SummaryError
from schemas import Report, Study
from summaries.cells import MOST_CELLS, Cell, by_cell, keeps_cells
from summaries.reading import Reports, evidence_of
from summaries.reducing import CHUNK, check_study, good_reports, reduced
from summaries.summary import CELLS, QuestionSummary, Summary


class PublicColumns(NamedTuple):
    """Reports of a study with public fields, as columns.

    Attributes:
        public: {field id: (reports,)}: floats of a number, labels of a choice as objects;
            pandas.DataFrame(public) takes them.
        rows: {question id: (answered,)}: which rows answer it; all of them, unless the study asks one.
        payloads: {question id: (answered, bytes)}: what these rows report, uint8.
    """

    public: dict[str, NDArray[Any]]
    rows: dict[str, NDArray[np.int64]]
    payloads: dict[str, NDArray[np.uint8]]


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


def public_columns(study: Study, reports: Iterable[Report]) -> PublicColumns:
    """Give reports as columns: public values, and beside them what each question's payloads are.

    Args:
        study: the document that was answered.
        reports: any series of reports on it, each of which counts once.

    Returns:
        The columns, a row for each report.

    Raises:
        InputError: the study has no public fields.
        ReportError: as `summarize` raises it.
    """
    _refuse_without_fields(study)
    values: dict[str, list[str]] = {field.id: [] for field in study.public}
    mechanisms = mechanisms_of(study)
    rows: dict[str, list[int]] = {name: [] for name in mechanisms}
    payloads: dict[str, list[bytes]] = {name: [] for name in mechanisms}
    for row, report in enumerate(good_reports(study, reports)):
        for name, column in values.items():
            column.append(report.public[name])
        for name, payload in report.payloads.items():
            rows[name].append(row)
            payloads[name].append(payload)
    kinds = {field.id: object if field.choices else np.float64 for field in study.public}
    return PublicColumns(
        {name: np.array(column, dtype=kinds[name]) for name, column in values.items()},
        {name: np.array(some, dtype=np.int64) for name, some in rows.items()},
        {
            name: np.frombuffer(b"".join(some), np.uint8).reshape(len(some), mechanisms[name].payload_size)
            for name, some in payloads.items()
        },
    )


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
