"""Taking reports in: each is checked against its study, and stored once or refused with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Union

from collector import queries
from collector.packing import PackedReport
from collector.problems import REPORT_CONFLICT, STUDY_CLOSED, STUDY_NOT_OPEN, ProblemError
from collector.publishing import unknown_study
from collector.rules import UnknownVersionError
from schemas import Report
from schemas.errors import ReportError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from collector.context import Collector

# A device goes by its own calendar, which may be a day ahead of UTC or behind it.
GRACE = timedelta(days=1)


class Receipt(Enum):
    """How a report came to be stored."""

    STORED = "stored"
    DUPLICATE = "duplicate"


Outcome = Union[Receipt, ProblemError]


def check(collector: Collector, study_id: str, report: Report) -> PackedReport:
    """Check a report against the version of the study that it answers. Raises ReportError, or
    ProblemError for a study that is not published.

    Versions before the current one are good too: a device answers once, and may send late.
    """
    if report.study != study_id:
        raise ReportError("study", f"this address takes reports for {study_id!r}")
    try:
        rules = collector.rules.find(study_id, report.version)
    except UnknownVersionError:
        _require_study(collector, study_id)
        raise ReportError("version", f"the study has no version {report.version}") from None
    return rules.pack(report)


def store(collector: Collector, study_id: str, reports: Sequence[PackedReport]) -> list[Outcome]:
    """Store checked reports in one transaction, durable on return; one outcome each, in their order.

    Raises ProblemError for a study that is not published.
    """
    day = collector.today()
    with collector.database.write() as session:
        study = queries.study_state(session, study_id)
        if study is None:
            raise unknown_study(study_id)
        return _store(session, study, day, reports)


def store_one(collector: Collector, study_id: str, report: PackedReport) -> Receipt:
    """Store one checked report, durable on return. Raises ProblemError when it is refused."""
    (outcome,) = store(collector, study_id, [report])
    if isinstance(outcome, ProblemError):
        raise outcome
    return outcome


def _store(
    session: Session, study: queries.StudyState, day: date, reports: Sequence[PackedReport]
) -> list[Outcome]:
    first: dict[bytes, PackedReport] = {}
    for report in reports:
        first.setdefault(report.id, report)
    shut = _shut(study, day)
    stored = set() if shut else queries.insert_reports(session, study.number, day, first.values())
    held = queries.held_reports(session, study.number, first.keys() - stored)
    held.update({report_id: first[report_id] for report_id in stored})
    return [_outcome(report, held, stored, shut) for report in reports]


def _outcome(
    report: PackedReport, held: dict[bytes, PackedReport], unclaimed: set[bytes], shut: ProblemError | None
) -> Outcome:
    """unclaimed: ids stored by this transaction whose first report has not had its outcome yet."""
    if report.id not in held and shut is not None:
        return shut
    if held[report.id] != report:
        return ProblemError(REPORT_CONFLICT, "a report with this id and other contents is stored", "id")
    if report.id in unclaimed:
        unclaimed.remove(report.id)
        return Receipt.STORED
    return Receipt.DUPLICATE


def _shut(study: queries.StudyState, day: date) -> ProblemError | None:
    """Why the study takes no new report on this day, if it does not."""
    if study.closed:
        return ProblemError(STUDY_CLOSED, "the study was closed")
    if study.closes is not None and day - study.closes > GRACE:
        return ProblemError(STUDY_CLOSED, f"the study closed on {study.closes}")
    if study.opens is not None and study.opens - day > GRACE:
        return ProblemError(STUDY_NOT_OPEN, f"the study opens on {study.opens}")
    return None


def _require_study(collector: Collector, study_id: str) -> None:
    with collector.database.read() as session:
        if queries.study_state(session, study_id) is None:
            raise unknown_study(study_id)
