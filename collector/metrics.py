"""Counts and measures for Prometheus; no label says anything about a device."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, cast

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector as RegistryCollector
from prometheus_client.samples import Sample

from collector.settings import METRICS_FOLDER

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FOLDER_MODE = 0o700
OTHER_ROUTE = "other"
MOST_REMEMBERED = 1000
COMMIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Totals(NamedTuple):
    """The counts of stored reports, of repeated reports, and of refused reports by type of problem."""

    accepted: int
    duplicates: int
    rejected: dict[str, int]


class Metrics:
    """One collector's counts. With PROMETHEUS_MULTIPROC_DIR set, `render` adds up all its processes."""

    def __init__(self) -> None:
        # These metrics would show to the microsecond when the first report arrived.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        if METRICS_FOLDER in os.environ:
            Path(os.environ[METRICS_FOLDER]).mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        self._registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"ldpkit_{name}_total", text, labels, registry=self._registry)

        def histogram(name: str, text: str, *labels: str) -> Histogram:
            name = f"ldpkit_{name}_seconds"
            return Histogram(name, text, labels, registry=self._registry, buckets=COMMIT_SECONDS)

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
        self._depth = Gauge(
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
        return generate_latest(self._whole_registry()) + rendered(measures)

    def totals(self) -> Totals:
        """Return the counts of reports."""
        accepted, duplicates = (
            sum(int(sample.value) for sample in self._samples(f"ldpkit_reports_{name}_total"))
            for name in ("accepted", "duplicate")
        )
        rejected = self._samples("ldpkit_reports_rejected_total")
        return Totals(
            accepted, duplicates, {sample.labels["reason"]: int(sample.value) for sample in rejected}
        )

    def refused(self) -> dict[str, dict[str, int]]:
        """Return how many uploads were refused, by study and type of problem."""
        refused: dict[str, dict[str, int]] = {}
        for sample in self._samples("ldpkit_study_reports_rejected_total"):
            reasons = refused.setdefault(sample.labels["study"], {})
            reasons[sample.labels["reason"]] = int(sample.value)
        return refused

    def _samples(self, name: str) -> Iterator[Sample]:
        for metric in self._whole_registry().collect():
            yield from (sample for sample in metric.samples if sample.name == name)

    def _whole_registry(self) -> CollectorRegistry:
        """Return the counts of all processes if there are several, else this process's."""
        if METRICS_FOLDER not in os.environ:
            return self._registry
        _forget_ended_processes(Path(os.environ[METRICS_FOLDER]))
        registry = CollectorRegistry()
        _BegunProcesses(registry)  # type: ignore[no-untyped-call]
        return registry


class _BegunProcesses(MultiProcessCollector):
    """The counts of all processes, except empty files.

    A file is empty until its starting process has sized it, and stays empty if the process was killed before.
    """

    def collect(self) -> Iterable[Metric]:
        """Yield the sums of all counts."""
        files = [str(file) for file in Path(self._path).glob("*.db") if file.stat().st_size]
        return cast(Iterable[Metric], self.merge(files))  # type: ignore[no-untyped-call]


def rendered(measures: Iterable[Metric]) -> bytes:
    """Return measures alone, in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Measured(list(measures)))
    return generate_latest(registry)


class _Measured(RegistryCollector):
    """Wraps measures that were taken for this request."""

    def __init__(self, measures: list[Metric]) -> None:
        self._measures = measures

    def collect(self) -> Iterable[Metric]:
        """Return all measures."""
        return self._measures


def _forget_ended_processes(folder: Path) -> None:
    """Remove the gauges of killed processes, whose queues are gone; their counts stay."""
    for file in folder.glob("gauge_live*.db"):
        try:
            os.kill(int(file.stem.rpartition("_")[2]), 0)
        except ProcessLookupError:
            file.unlink(missing_ok=True)
        except PermissionError:
            pass
