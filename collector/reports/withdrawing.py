"""Deleting one report for good, by whoever knows its id."""

from __future__ import annotations

from sqlalchemy.orm import Session

from collector.http.problems import REPORT_UNKNOWN, ProblemError
from collector.reports.running_summary import FindRules, take_back_reports
from collector.storage import queries
from collector.studies.publishing import unknown_study


def withdraw(session: Session, find: FindRules, study_id: str, report_id: bytes) -> None:
    """Delete a report but for its id; doing so again changes nothing.

    The id is the capability: the device alone drew it. Raises ProblemError for an unknown study or report.
    """
    study = queries.study_state(session, study_id, keep=True)
    if study is None:
        raise unknown_study(study_id)
    report = queries.withdraw_report(session, study.number, report_id)
    if report is None:
        raise ProblemError(REPORT_UNKNOWN, "no report with this id is stored")
    take_back_reports(session, find, study_id, study.number, [report])
