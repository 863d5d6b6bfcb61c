"""Devices that send without a pause while PostgreSQL restarts, fails over or runs out of connections."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from threading import Event, Lock, Thread

from tests.kit.collectors import build_report
from tests.kit.postgresql import Postgresql

SENDERS = 4
# Uploads that must have been taken before a fault, and after it.
SOME = 40
LONGEST_SECONDS = 60


class Devices:
    """Devices that send one report after another to a collector, each until it is taken."""

    def __init__(self, harness, study) -> None:
        self._harness = harness
        self._study = study
        self._lock = Lock()
        self._stop = Event()
        self.acknowledged: set[str] = set()
        self.statuses: Counter[int] = Counter()
        self.problems: set[str] = set()
        self._threads = [Thread(target=self._send, daemon=True) for _ in range(SENDERS)]

    def __enter__(self) -> Devices:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(LONGEST_SECONDS)
            assert not thread.is_alive()

    def wait_for(self, count: int) -> None:
        """Wait until so many more were acknowledged."""
        wanted, deadline = len(self.acknowledged) + count, time.monotonic() + LONGEST_SECONDS
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < deadline, self.statuses
            time.sleep(0.02)

    def require_all(self, harness) -> None:
        """All that was acknowledged is there, once, and was refused with what devices come back after."""
        exported = [report.id for report in harness.exported()]
        assert len(exported) == len(set(exported))
        assert self.acknowledged <= set(exported)
        assert set(self.statuses) <= {200, 201, 503}, self.statuses
        assert self.problems <= {"urn:ldpkit:problem:unavailable"}
        # The summary was changed in the transactions that were committed, and in no other.
        assert harness.summary().get_json()["questions"]["ever"]["n"] == len(exported)

    def _send(self) -> None:
        while not self._stop.is_set():
            report = build_report(self._study)
            while not self._put(report) and not self._stop.is_set():
                time.sleep(0.05)

    def _put(self, report) -> bool:
        response = self._harness.put(report)
        with self._lock:
            self.statuses[response.status_code] += 1
            if response.status_code in (200, 201):
                self.acknowledged.add(report.id)
                return True
            self.problems.add(response.get_json(force=True)["type"])
        assert int(response.headers["Retry-After"]) > 0
        return False


def under_load(harness, study, fault: Callable[[Devices], object]) -> Devices:
    """Let a fault happen while devices send, and wait until reports are taken again."""
    assert harness.publish(study).status_code == 201
    with Devices(harness, study) as devices:
        devices.wait_for(SOME)
        fault(devices)
        devices.wait_for(SOME)
    return devices


def failed_over(
    make_harness, primary: Postgresql, standby: Postgresql, study, cut: Callable[[Devices], object]
):
    """Load on a primary that dies after `cut`, and its replica in its place."""
    url = primary.new_database()
    harness = make_harness(database=f"{url},{standby.folder}&target_session_attrs=read-write", lock_timeout=2)

    def fail_over(devices):
        cut(devices)
        primary.kill()
        standby.promote()

    return harness, under_load(harness, study, fail_over)
