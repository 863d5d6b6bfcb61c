"""Counts and measures for Prometheus; no label says anything about a device."""

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, cast

import prometheus_client as prometheus
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector

from collector.settings import METRICS_FOLDER

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER_ROUTE = "other"
MOST_REMEMBERED = 1000
COMMIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Totals(NamedTuple):
    """The counts of stored and of repeated reports, and of refused uploads by type, also of each study."""

    accepted: int
    duplicates: int
    rejected: dict[str, int]
    rejected_by_study: dict[str, dict[str, int]]


class Metrics:
    """One collector's counts. With PROMETHEUS_MULTIPROC_DIR set, `render` adds up all its processes."""

    def __init__(self) -> None:
        # These metrics would show to the microsecond when the first report arrived.
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = prometheus.CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> prometheus.Counter:
            return prometheus.Counter(f"ldpkit_{name}_total", text, labels, registry=self._registry)

        def histogram(name: str, text: str, *labels: str) -> prometheus.Histogram:
            name = f"ldpkit_{name}_seconds"
            return prometheus.Histogram(name, text, labels, registry=self._registry, buckets=COMMIT_SECONDS)

        refused = "Reports and uploads refused, by"
        self._accepted = counter("reports_accepted", "Reports stored")
        self._duplicates = counter("reports_duplicate", "Reports that were stored before")
        self._rejected = counter("reports_rejected", f"{refused} type of problem", "reason")
        accepted = counter("study_reports_accepted", "Reports stored, by study", "study")
        self._study_rejected = counter(
            "study_reports_rejected", f"{refused} study and type of problem", "study", "reason"
        )
        self._deletions = counter("reports_deleted", "Deletions, by who proved the right to them", "by")
        self._wrong_keys = counter("keys_refused", "Requests with a wrong key")
        self._commits = histogram("commit", "Time to write and commit what had gathered")
        text = "Time to answer a request, by route, without the time that its answer takes to go out"
        # Finding a counter by its label would cost an upload as much as counting.
        self._of_route = lru_cache(MOST_REMEMBERED)(histogram("request", text, "route").labels)
        self._accepted_of = lru_cache(MOST_REMEMBERED)(accepted.labels)
        self._depth = prometheus.Gauge(
            "ldpkit_queue_reports",
            "Reports that wait to be written",
            registry=self._registry,
            multiprocess_mode="livesum",
        )

    def count(
        self, accepted: int, duplicates: int, rejected: Iterable[str] = (), study: str | None = None
    ) -> None:
        """Add reports.

        Args:
            accepted: how many were stored.
            duplicates: how many were stored before.
            rejected: a reason for each refused report.
            study: a known study, or None.
        """
        self._accepted.inc(accepted)
        if duplicates:
            self._duplicates.inc(duplicates)
        for reason in rejected:
            self._rejected.labels(reason).inc()
            if study is not None:
                self._study_rejected.labels(study, reason).inc()
        if study is not None and accepted:
            self._accepted_of(study).inc(accepted)

    def count_deletion(self, by: str, count: int = 1) -> None:
        """Add deletions, by the report's "device", an "operator" with a key, or a study's "retention"."""
        self._deletions.labels(by).inc(count)

    def count_wrong_key(self) -> None:
        """Count a request with a wrong key."""
        self._wrong_keys.inc()

    def observe_commit(self, seconds: float, waiting: int) -> None:
        """Add one commit, and set how many reports wait now."""
        self._commits.observe(seconds)
        self._depth.set(waiting)

    def observe_request(self, route: str | None, seconds: float) -> None:
        """Add one request. route: its name in the application, None for an unknown address."""
        self._of_route(route or OTHER_ROUTE).observe(seconds)

    def render(self, measures: Iterable[Metric] = ()) -> bytes:
        """Return all metrics in Prometheus' text format. measures: current values that are not counts."""
        return rendered((*self._counts(), *measures))

    def totals(self) -> Totals:
        """Return the counts of reports."""
        samples = [sample for metric in self._counts() for sample in metric.samples]
        accepted, duplicates = (
            sum(int(sample.value) for sample in samples if sample.name == f"ldpkit_reports_{name}_total")
            for name in ("accepted", "duplicate")
        )
        rejected, by_study = dict[str, int](), dict[str, dict[str, int]]()
        for sample in samples:
            if sample.name == "ldpkit_reports_rejected_total":
                rejected[sample.labels["reason"]] = int(sample.value)
            if sample.name == "ldpkit_study_reports_rejected_total":
                reasons = by_study.setdefault(sample.labels["study"], {})
                reasons[sample.labels["reason"]] = int(sample.value)
        return Totals(accepted, duplicates, rejected, by_study)

    def _counts(self) -> Iterable[Metric]:
        """Return the counts of all processes if there are several, else this process's."""
        if METRICS_FOLDER not in os.environ:
            return self._registry.collect()
        folder = Path(os.environ[METRICS_FOLDER])
        # The gauges of killed processes go, with their queues; their counts stay.
        for file in folder.glob("gauge_live*.db"):
            try:
                os.kill(int(file.stem.rpartition("_")[2]), 0)
            except ProcessLookupError:
                file.unlink(missing_ok=True)
            except PermissionError:
                # A process of another user has the number now.
                pass
        # A file is empty until its starting process has sized it, and stays empty if that was killed before.
        files = [str(file) for file in folder.glob("*.db") if file.stat().st_size]
        return cast(Iterable[Metric], MultiProcessCollector.merge(files))  # type: ignore[no-untyped-call]


def rendered(measures: Iterable[Metric]) -> bytes:
    """Return measures alone, in Prometheus' text format."""
    registry = SimpleNamespace(collect=lambda: measures)
    return prometheus.generate_latest(cast(prometheus.CollectorRegistry, registry))
