"""Current measures of the database and its studies for Prometheus; none are counts of one process."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily
from sqlalchemy.exc import SQLAlchemyError

from collector.daily import kept_everywhere
from collector.problems import ProblemError
from collector.status import days_left, state_of
from collector.store import database_bytes

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from collector.context import Collector


def measures_of(collector: Collector) -> list[Metric]:
    """Return the measures; if the database fails, only that is reported."""
    size = _gauge("database_bytes", "What the database takes on its disk")
    reports = _gauge("study_reports", "Reports of a study, withdrawn ones not counted", "study")
    is_open = _gauge("study_open", "Whether a study is open today", "study")
    text = "Days until a study's last day is over, for studies that name one"
    left = _gauge("study_days_left", text, "study")
    text = "Reports that are kept for longer than their study states"
    overdue = _gauge("study_reports_overdue", text, "study")
    today, late = collector.today(), Counter[str]()
    try:
        with collector.database.read() as session:
            size.add_metric([], database_bytes(session))
        for kept in kept_everywhere(collector):
            late[kept.study] += kept.overdue
        studies = collector.studies.get()
    except (SQLAlchemyError, ProblemError):
        return [database_up(False)]
    for study in studies:
        reports.add_metric([study.id], study.reports)
        overdue.add_metric([study.id], late[study.id])
        is_open.add_metric([study.id], state_of(study, today) == "open")
        remaining = days_left(study, today)
        if remaining is not None:
            left.add_metric([study.id], remaining)
    return [database_up(True), size, reports, is_open, left, overdue]


def database_up(answers: bool) -> Metric:
    """Return the measure that tells whether the database answers."""
    is_up = _gauge("database_up", "Whether the database answers")
    is_up.add_metric([], int(answers))
    return is_up


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"ldpkit_{name}", text, labels=labels)
