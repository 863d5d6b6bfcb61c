"""PostgreSQL restarts, fails over and runs out of connections under load: nothing acknowledged is lost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from threading import Event, Lock, Thread

import psycopg
import pytest

from collector.cli import wait_for_database
from collector.settings import Settings
from collector.storage.database import Database, has_lagging_replica
from ldp_client.documents.errors import InputError
from tests.collector.conftest import build_report
from tests.collector.postgresql import STANDBY, Postgresql
from tests.kit.errors import raises

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


@pytest.fixture
def make_postgresql():
    """Servers that a test may break."""
    made: list[Postgresql] = []

    def make(*arguments, **options) -> Postgresql:
        made.append(Postgresql(*arguments, **options))
        return made[-1]

    yield make
    for server in reversed(made):
        server.remove()


def under_load(harness, study, fault: Callable[[Devices], object]) -> Devices:
    """Let a fault happen while devices send, and wait until reports are taken again."""
    assert harness.publish(study).status_code == 201
    with Devices(harness, study) as devices:
        devices.wait_for(SOME)
        fault(devices)
        devices.wait_for(SOME)
    return devices


def test_restarts_lose_no_acknowledged_report(make_harness, postgresql, study):
    harness = make_harness(database=postgresql.new_database(), lock_timeout=2)

    def restart_both_ways(_devices):
        postgresql.restart("immediate")
        postgresql.restart("fast")

    under_load(harness, study, restart_both_ways).require_all(harness)


def test_exhausted_connections_lose_no_acknowledged_report(make_harness, make_postgresql, study):
    """Other programs take every connection, and end the collector's own."""
    server = make_postgresql(("fsync=off", "max_connections=8", "superuser_reserved_connections=0"))
    harness = make_harness(database=server.new_database(), lock_timeout=2)
    others: list[psycopg.Connection] = []
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'collector%'"

    def take_all(devices):
        ending = psycopg.connect(host=str(server.folder), user="postgres", dbname="postgres", autocommit=True)
        others.append(ending)
        deadline = time.monotonic() + LONGEST_SECONDS
        while len(others) < 8:
            assert time.monotonic() < deadline
            ending.execute(ended)
            try:
                others.append(psycopg.connect(host=str(server.folder), user="postgres", dbname="postgres"))
            except psycopg.OperationalError:
                time.sleep(0.01)
        refused = devices.statuses[503]
        while devices.statuses[503] < refused + 2 * SENDERS:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        for connection in others:
            connection.close()

    under_load(harness, study, take_all).require_all(harness)


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


def is_told_of_a_replica(primary: Postgresql) -> bool:
    """Whether a server that starts says that a replica would lack something."""
    database = Database(primary.new_database(), 10)
    try:
        return has_lagging_replica(database)
    finally:
        database.engine.dispose()


def test_synchronous_replica_has_every_acknowledged_report(make_harness, make_postgresql, study):
    primary = make_postgresql()
    standby = make_postgresql(primary=primary)
    primary.set("synchronous_standby_names", STANDBY)
    assert not is_told_of_a_replica(primary)
    harness, devices = failed_over(make_harness, primary, standby, study, lambda _devices: None)
    devices.require_all(harness)


def test_asynchronous_replica_loses_acknowledged_reports(make_harness, make_postgresql, study):
    """The reason why docs/operating.md requires a synchronous replica; shows that the test detects a loss."""
    primary = make_postgresql()
    standby = make_postgresql(primary=primary)

    def fall_behind(devices):
        # What a slow line does in its time.
        standby.set("primary_conninfo", "host=/nowhere")
        deadline = time.monotonic() + LONGEST_SECONDS
        while primary.query("SELECT 1 FROM pg_stat_replication"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        devices.wait_for(SENDERS)

    assert is_told_of_a_replica(primary)
    harness, devices = failed_over(make_harness, primary, standby, study, fall_behind)
    assert devices.acknowledged - {report.id for report in harness.exported()}


def test_serve_waits_for_a_database_that_starts_later(make_postgresql, capsys):
    server = make_postgresql()
    settings = Settings(database=server.new_database(), token="operator-of-the-tests")
    server.kill()
    wait_for_database(settings, sleep=lambda _seconds: server.start())
    told = capsys.readouterr().err
    assert told.startswith("waiting 60 s for the database: ")
    assert told.count("\n") == 1
    server.kill()
    times = iter((0.0, 30.0, 61.0))
    with raises(InputError, "database.unreachable"):
        wait_for_database(settings, clock=lambda: next(times), sleep=lambda _seconds: None)
