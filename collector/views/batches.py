"""Uploads of many reports at once: one bad report does not refuse the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.db import problem_of
from collector.problems import (
    BATCH_INVALID,
    BATCH_WRONG,
    BODY_TOO_LARGE,
    STUDY_UNKNOWN,
    TICKET_NEEDED,
    ProblemError,
)
from collector.reports import intake
from collector.store import PackedReport
from ldp_client.documents.errors import ReportError
from schemas import Report

if TYPE_CHECKING:
    from collector.context import Collector

MOST_REPORTS = 100_000
# More wrong reports than this mean another format or another study: checking on would cost more than sending.
MOST_WRONG = 100
LONGEST_ID = 64

Checked = PackedReport | ProblemError


class CheckedBatch(NamedTuple):
    """The reports of a batch, or the problem of each, and the ids that they state."""

    reports: Sequence[Checked]
    ids: Sequence[str | None]


def check(collector: Collector, study_id: str, document: Any) -> CheckedBatch:
    """Check the reports of a batch.

    Raises ProblemError for a body that is not a batch, for a study that is not published, and where more
    than MOST_WRONG reports cannot be taken.
    """
    members = _members(document)
    checked: list[Checked] = []
    wrong: list[dict[str, Any]] = []
    for index, member in enumerate(members):
        checked.append(_check(collector, study_id, member))
        if isinstance(checked[-1], ProblemError):
            if len(wrong) == MOST_WRONG:
                detail = f"more than {MOST_WRONG} reports cannot be taken; nothing was stored"
                raise ProblemError(BATCH_WRONG, detail, "reports", more={"failed": wrong})
            wrong.append(_failure(index, _stated_id(member), checked[-1]))
    return CheckedBatch(checked, [_stated_id(member) for member in members])


def store(collector: Collector, study_id: str, reports: Sequence[PackedReport]) -> dict[str, Any]:
    """Store checked reports; return the answer of `store_checked`."""
    return store_checked(collector, study_id, CheckedBatch(reports, [report.id.hex() for report in reports]))


def store_checked(collector: Collector, study_id: str, batch: CheckedBatch) -> dict[str, Any]:
    """Store the valid reports; return what became of each.

    The answer is {"stored": n, "duplicates": n, "failed": [{"id", "type", "detail", "field"}, ...]}.
    Raises ProblemError if none could be stored.
    """
    checked, ids = batch
    good = [one for one in checked if isinstance(one, PackedReport)]
    submitted = iter(intake.submit(collector, study_id, good))
    outcomes = [next(submitted) if isinstance(one, PackedReport) else one for one in checked]
    stored, duplicates = intake.count(collector, study_id, outcomes)
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
        report = intake.check(collector, study_id, Report.from_document(member))
        intake.refuse_batch(collector.rules.find(study_id, report.version))
        return report
    except (ReportError, ProblemError) as error:
        problem = problem_of(error)
        if problem.kind in (STUDY_UNKNOWN, TICKET_NEEDED):
            raise
        return problem


def _stated_id(member: Any) -> str | None:
    report_id = member.get("id") if isinstance(member, dict) else None
    return report_id[:LONGEST_ID] if isinstance(report_id, str) else None


def _failure(index: int, report_id: str | None, problem: ProblemError) -> dict[str, Any]:
    field = f"reports[{index}].{problem.field or ''}".rstrip(".")
    return {"id": report_id, "type": problem.kind.type, "detail": problem.detail, "field": field}
