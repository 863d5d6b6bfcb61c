"""Counts and measures for Prometheus; no label says anything about a device."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import date
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

from collector.limiter import LOGGER
from collector.logs import log_event
from collector.settings import METRICS_FOLDER

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ACCEPTED = "ldpkit_reports_accepted_total"
DUPLICATES = "ldpkit_reports_duplicate_total"
REJECTED = "ldpkit_reports_rejected_total"
STUDY_ACCEPTED = "ldpkit_study_reports_accepted_total"
STUDY_REJECTED = "ldpkit_study_reports_rejected_total"
FOLDER_MODE = 0o700
OTHER_ROUTE = "other"
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
        _make_folder()
        self._told: date | None = None
        self._registry = CollectorRegistry()
        self._accepted = self._counter(ACCEPTED, "Reports stored")
        self._duplicates = self._counter(DUPLICATES, "Reports that were stored before")
        self._rejected = self._counter(
            REJECTED, "Reports and uploads refused, by type of problem", ["reason"]
        )
        self._of_study_accepted = self._counter(STUDY_ACCEPTED, "Reports stored, by study", ["study"])
        self._of_study_rejected = self._counter(
            STUDY_REJECTED, "Reports and uploads refused, by study and type of problem", ["study", "reason"]
        )
        self._deletions = self._counter(
            "ldpkit_reports_deleted_total", "Deletions, by who proved the right to them", ["by"]
        )
        self._wrong_keys = self._counter("ldpkit_keys_refused_total", "Requests with a wrong key")
        self._commits = Histogram(
            "ldpkit_commit_seconds",
            "Time to write and commit what had gathered",
            registry=self._registry,
            buckets=COMMIT_SECONDS,
        )
        self._requests = Histogram(
            "ldpkit_request_seconds",
            "Time to answer a request, by route, without the time that its answer takes to go out",
            ["route"],
            registry=self._registry,
            buckets=COMMIT_SECONDS,
        )
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
        if accepted:
            self._accepted.inc(accepted)
        if duplicates:
            self._duplicates.inc(duplicates)
        for reason in rejected:
            self._rejected.labels(reason).inc()
            if study is not None:
                self._of_study_rejected.labels(study, reason).inc()
        if study is not None and accepted:
            self._of_study_accepted.labels(study).inc(accepted)

    def tell_daily(self, day: date) -> None:
        """Log the counts at each day's end; more often they would show when reports arrived.

        For calls from one thread only.
        """
        before, self._told = self._told, day
        if before is not None and day != before and _is_first_to_tell(before):
            accepted, duplicates, rejected = self.totals()
            counts = {"accepted": accepted, "duplicates": duplicates, "rejected": rejected}
            log_event("counts", "reports since the server started", day=before.isoformat(), **counts)

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
        self._requests.labels(route or OTHER_ROUTE).observe(seconds)

    def render(self, measures: Iterable[Metric] = ()) -> bytes:
        """Return all metrics in Prometheus' text format. measures: current values that are not counts."""
        return generate_latest(self._whole_registry()) + rendered(measures)

    def totals(self) -> Totals:
        """Return the counts of reports."""
        found: dict[str, dict[str, int]] = {ACCEPTED: {}, DUPLICATES: {}, REJECTED: {}}
        for metric in self._whole_registry().collect():
            for sample in metric.samples:
                if sample.name in found:
                    found[sample.name][sample.labels.get("reason", "")] = int(sample.value)
        return Totals(found[ACCEPTED].get("", 0), found[DUPLICATES].get("", 0), found[REJECTED])

    def refused(self) -> dict[str, dict[str, int]]:
        """Return how many uploads were refused, by study and type of problem."""
        found: dict[str, dict[str, int]] = {}
        for metric in self._whole_registry().collect():
            for one in metric.samples:
                if one.name == STUDY_REJECTED:
                    found.setdefault(one.labels["study"], {})[one.labels["reason"]] = int(one.value)
        return found

    def _whole_registry(self) -> CollectorRegistry:
        """Return the counts of all processes if there are several, else this process's."""
        if METRICS_FOLDER not in os.environ:
            return self._registry
        _make_folder()
        _forget_ended_processes(Path(os.environ[METRICS_FOLDER]))
        registry = CollectorRegistry()
        _BegunProcesses(registry)  # type: ignore[no-untyped-call]
        return registry

    def _counter(self, name: str, text: str, labels: Iterable[str] = ()) -> Counter:
        return Counter(name, text, labels, registry=self._registry)


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
    now = CollectorRegistry()
    now.register(_Measured(list(measures)))
    return generate_latest(now)


class _Measured(RegistryCollector):
    """Wraps measures that were taken for this request."""

    def __init__(self, measures: list[Metric]) -> None:
        self._measures = measures

    def collect(self) -> Iterable[Metric]:
        """Return all measures."""
        return self._measures


def _make_folder() -> None:
    """Make the processes' folder again if it was deleted, because no worker starts without it."""
    if METRICS_FOLDER not in os.environ:
        return
    folder = Path(os.environ[METRICS_FOLDER])
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True)
    except FileExistsError:
        return
    LOGGER.error("the counts of /metrics were deleted with %s: they start again with each worker", folder)


def _is_first_to_tell(day: date) -> bool:
    """Return True if no other process of this server has logged the day's counts, which are common to all."""
    if METRICS_FOLDER not in os.environ:
        return True
    try:
        os.close(os.open(Path(os.environ[METRICS_FOLDER]) / f"told-{day}", os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    except OSError:
        # Without the folder, each process counts separately.
        return True
    return True


def _forget_ended_processes(folder: Path) -> None:
    """Remove the gauges of killed processes, whose queues are gone; their counts stay."""
    for file in folder.glob("gauge_live*.db"):
        try:
            os.kill(int(file.stem.rpartition("_")[2]), 0)
        except ProcessLookupError:
            file.unlink(missing_ok=True)
        except PermissionError:
            pass
