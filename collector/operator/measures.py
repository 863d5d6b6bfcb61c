"""Current measures of the database and its studies for Prometheus; none are counts of one process."""

from __future__ import annotations

from collections.abc import Iterator
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
    found: list[Metric] = []
    try:
        with collector.database.read() as session:
            size = GaugeMetricFamily("ldpkit_database_bytes", "What the database takes on its disk")
            size.add_metric([], database_bytes(session))
        found = [size, *_of_studies(collector)]
    except (SQLAlchemyError, ProblemError):
        return [database_up(False)]
    return [database_up(True), *found]


def database_up(answers: bool) -> Metric:
    """Return the measure that tells whether the database answers."""
    is_up = GaugeMetricFamily("ldpkit_database_up", "Whether the database answers")
    is_up.add_metric([], int(answers))
    return is_up


def _of_studies(collector: Collector) -> Iterator[Metric]:
    today, late = collector.today(), dict[str, int]()
    reports = _family("ldpkit_study_reports", "Reports of a study, withdrawn ones not counted")
    is_open = _family("ldpkit_study_open", "Whether a study is open today")
    left = _family(
        "ldpkit_study_days_left", "Days until a study's last day is over, for studies that name one"
    )
    overdue = _family(
        "ldpkit_study_reports_overdue", "Reports that are kept for longer than their study states"
    )
    for kept in kept_everywhere(collector):
        late[kept.study] = late.get(kept.study, 0) + kept.overdue
    for study in collector.studies.get():
        name = [study.id]
        reports.add_metric(name, study.reports)
        overdue.add_metric(name, late.get(study.id, 0))
        is_open.add_metric(name, state_of(study, today) == "open")
        remaining = days_left(study, today)
        if remaining is not None:
            left.add_metric(name, remaining)
    yield from (reports, is_open, left, overdue)


def _family(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=["study"])
