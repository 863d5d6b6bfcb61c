"""Counts for Prometheus, of reports and commits; no label says anything about a device."""

from __future__ import annotations

import os
from collections.abc import Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from collector.settings import METRICS_FOLDER

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COMMIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics:
    """One collector's counts. With PROMETHEUS_MULTIPROC_DIR set, `render` adds up all its processes."""

    def __init__(self) -> None:
        # They would tell when the first report came, to the microsecond.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._accepted = self._counter("ldpkit_reports_accepted_total", "Reports stored")
        self._duplicates = self._counter("ldpkit_reports_duplicate_total", "Reports that were stored before")
        self._rejected = self._counter(
            "ldpkit_reports_rejected_total", "Reports and uploads refused, by type of problem", ["reason"]
        )
        self._commits = Histogram(
            "ldpkit_commit_seconds",
            "Time to write and commit what had gathered",
            registry=self._registry,
            buckets=COMMIT_SECONDS,
        )
        self._depth = Gauge(
            "ldpkit_queue_reports",
            "Reports that wait to be written",
            registry=self._registry,
            multiprocess_mode="livesum",
        )

    def count(self, accepted: int, duplicates: int, rejected: Iterable[str] = ()) -> None:
        """Add reports. rejected: one reason for each refused one."""
        if accepted:
            self._accepted.inc(accepted)
        if duplicates:
            self._duplicates.inc(duplicates)
        for reason in rejected:
            self._rejected.labels(reason).inc()

    def observe_commit(self, seconds: float, waiting: int) -> None:
        """Add one commit, and how many reports wait now."""
        self._commits.observe(seconds)
        self._depth.set(waiting)

    def render(self) -> bytes:
        """Everything in Prometheus' text format."""
        registry = self._registry
        if METRICS_FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def _counter(self, name: str, text: str, labels: Iterable[str] = ()) -> Counter:
        return Counter(name, text, labels, registry=self._registry)
