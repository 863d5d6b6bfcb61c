"""Uploads of many reports at once: one bad report does not refuse the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from collector.http.handling import problem_of
from collector.http.problems import BATCH_INVALID, BODY_TOO_LARGE, ProblemError
from collector.reports import intake
from collector.reports.packing import PackedReport
from schemas import Report
from schemas.errors import ReportError

if TYPE_CHECKING:
    from collector.context import Collector

# Each wrong one takes about a kilobyte in memory, and is listed in the answer.
MOST_REPORTS = 100_000

Checked = Union[PackedReport, ProblemError]


def receive(collector: Collector, study_id: str, document: Any) -> dict[str, Any]:
    """Store a batch: {"stored": n, "duplicates": n, "failed": [{"id", "type", "detail", "field"}, ...]}.

    Raises ProblemError for a body that is not a batch and for a study that is not published.
    """
    members = _members(document)
    checked = [_check(collector, study_id, member) for member in members]
    return _store(collector, study_id, checked, [_stated_id(member) for member in members])


def store(collector: Collector, study_id: str, reports: Sequence[PackedReport]) -> dict[str, Any]:
    """Store checked reports; the answer is that of `receive`."""
    return _store(collector, study_id, reports, [report.id.hex() for report in reports])


def _store(
    collector: Collector, study_id: str, checked: Sequence[Checked], ids: Sequence[str | None]
) -> dict[str, Any]:
    good = [one for one in checked if isinstance(one, PackedReport)]
    settled = iter(intake.submit(collector, study_id, good))
    outcomes = [next(settled) if isinstance(one, PackedReport) else one for one in checked]
    stored, duplicates = intake.count(collector, outcomes)
    failed = []
    if stored + duplicates < len(outcomes):
        failed = [
            _failure(index, ids[index], outcome)
            for index, outcome in enumerate(outcomes)
            if isinstance(outcome, ProblemError)
        ]
    return {"stored": stored, "duplicates": duplicates, "failed": failed}


def _members(document: Any) -> list[Any]:
    if not isinstance(document, dict) or not isinstance(document.get("reports"), list):
        raise ProblemError(BATCH_INVALID, "must be an object with a list of reports", "reports")
    unknown = sorted(set(document) - {"reports"})
    if unknown:
        raise ProblemError(BATCH_INVALID, "unknown field", unknown[0][:64])
    members: list[Any] = document["reports"]
    if len(members) > MOST_REPORTS:
        raise ProblemError(BODY_TOO_LARGE, f"has more than {MOST_REPORTS} reports")
    return members


def _check(collector: Collector, study_id: str, member: Any) -> Checked:
    try:
        return intake.check(collector, study_id, Report.from_document(member))
    except ReportError as error:
        return problem_of(error)


def _stated_id(member: Any) -> str | None:
    report_id = member.get("id") if isinstance(member, dict) else None
    return report_id if isinstance(report_id, str) else None


def _failure(index: int, report_id: str | None, problem: ProblemError) -> dict[str, Any]:
    field = f"reports[{index}].{problem.field or ''}".rstrip(".")
    return {"id": report_id, "type": problem.kind.type, "detail": problem.detail, "field": field}
