"""Tries to stop a collector through its database: hanging, away, full, short of connections, flooded."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from collector import limiter
from collector.limiter import QUIET_SECONDS, ThrottledLog
from collector.operator import key_checks
from collector.problems import ProblemError
from collector.reports import writer as writer_module
from collector.reports.limits import BURST_SECONDS, TokenBucket
from collector.reports.writer import Upload, Writer
from collector.storage import database as database_module
from collector.storage.database import Bounds, Database, Looks
from collector.storage.failures import problem_of
from collector.storage.keys import Role, add_key
from collector.storage.packing import PackedReport
from collector.storage.queries import OtherReleaseError
from collector.views import health
from tests.collector.conftest import build_report, build_study, wait_for
from tests.kit.errors import raises

# Of a harness, whose lock_timeout is 0.2 s, by the clocks of these tests; for readers also of a busy machine.
PATIENCE = 3.2
# Ends a test that hangs.
LONGEST_SECONDS = 60


@contextmanager
def stopped(server):
    """A PostgreSQL whose every process stands still: it keeps its connections and answers nothing."""
    master = server._server.pid
    children = Path(f"/proc/{master}/task/{master}/children").read_text().split()
    processes = [master, *map(int, children)]
    send_all(processes, signal.SIGSTOP)
    try:
        yield
    finally:
        send_all(processes, signal.SIGCONT)


def send_all(processes, number):
    for process in processes:
        # One that was ending has ended; the others must go on.
        with suppress(ProcessLookupError):
            os.kill(process, number)


class Clock:
    """Takes the place of `time` in a module: it stands until it is moved, and knows how often it was read."""

    def __init__(self):
        self.now, self.reads = 0.0, 0

    def monotonic(self):
        self.reads += 1
        return self.now


class Waits(Clock):
    """The writer's clock: it goes on only while somebody waits for a commit that is stuck."""

    def __init__(self, monkeypatch, is_stuck):
        super().__init__()
        self._is_stuck, self._lock = is_stuck, threading.Lock()
        monkeypatch.setattr(writer_module, "time", self)
        monkeypatch.setattr(writer_module._Job, "wait", lambda job, seconds: self._wait(job, seconds))

    def _wait(self, job, seconds):
        end = self.now + seconds
        if not self._is_stuck():
            return job._pending.acquire(timeout=LONGEST_SECONDS)
        with self._lock:
            self.now = max(self.now, end)
        return job._pending.acquire(blocking=False)


@pytest.mark.slow
def test_stopped_database_does_not_hold_up_server(make_harness, postgresql, monkeypatch):
    # It is stopped for less: what waits for it ends when it goes on.
    monkeypatch.setattr(database_module, "STATEMENT_SECONDS", 600)
    monkeypatch.setattr(health, "READY_SECONDS", LONGEST_SECONDS)
    study, is_stopped = build_study(), threading.Event()
    harness = make_harness(database=postgresql.new_database())
    writer = harness.collector.writer

    def is_stuck():
        if is_stopped.is_set():
            wait_for(lambda: writer._since is not None, LONGEST_SECONDS)
        return is_stopped.is_set()

    clock = Waits(monkeypatch, is_stuck)
    assert harness.publish(study).status_code == 201
    reports = [build_report(study) for _ in range(20)]
    assert harness.put(reports[0]).status_code == 201
    assert harness.client.get("/readyz").status_code == 200
    with ThreadPoolExecutor(12) as pool, stopped(postgresql):
        is_stopped.set()
        first = [pool.submit(harness.put, report) for report in reports[:8]]
        assert {one.result(LONGEST_SECONDS).status_code for one in first} == {503}
        waited = clock.now
        assert PATIENCE <= waited < PATIENCE + 0.5
        # From here on nobody waits.
        assert pool.submit(harness.put, reports[9]).result(LONGEST_SECONDS).status_code == 503
        for path, status in {"/healthz": 200, "/readyz": 503}.items():
            answer = pool.submit(harness.app.test_client().get, path)
            assert answer.result(LONGEST_SECONDS).status_code == status
        assert clock.now == waited
        is_stopped.clear()
    wait_for(lambda: harness.put(reports[10]).status_code == 201, LONGEST_SECONDS)
    assert harness.client.get("/readyz").status_code == 200


@pytest.mark.slow
def test_silent_database_is_not_waited_for(postgresql, monkeypatch):
    monkeypatch.setattr(database_module, "STATEMENT_SECONDS", 1)
    monkeypatch.setattr(database_module, "SILENCE_SECONDS", 1)
    clock = Clock()
    monkeypatch.setattr(database_module, "time", clock)
    database = Database(postgresql.new_database(), 1.0, Bounds(2, 1.0))

    def read(what="1"):
        with database.read() as session:
            session.connection().exec_driver_sql(f"SELECT {what}")

    def looks_again():
        """At least once from now on; only who waits does."""
        before = clock.reads
        wait_for(lambda: clock.reads > before + 2, LONGEST_SECONDS)

    read()
    with ThreadPoolExecutor(1) as pool, stopped(postgresql):
        waiting = pool.submit(read)
        looks_again()
        clock.now += 2
        looks_again()
        assert not waiting.done()
        clock.now += 0.1
        with pytest.raises(DBAPIError):
            waiting.result(LONGEST_SECONDS)
    with pytest.raises(DBAPIError, match="statement timeout"):
        read("pg_sleep(100)")
    read()
    database.engine.dispose()


def test_readers_leave_connections_for_writers(make_harness, postgresql, monkeypatch):
    clock = Clock()
    for module in (limiter, writer_module):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(health, "READY_SECONDS", LONGEST_SECONDS)
    study = build_study()
    url = postgresql.new_database()
    harness = make_harness(database=url)
    assert harness.publish(study).status_code == 201
    assert harness.put(build_report(study)).status_code == 201
    entered, leave = threading.Barrier(5), threading.Event()

    def read():
        with harness.collector.database.read() as session:
            session.connection().exec_driver_sql("SELECT 1")
            entered.wait(LONGEST_SECONDS)
            leave.wait(3 * LONGEST_SECONDS)

    with ThreadPoolExecutor(30) as pool, ExitStack() as ended:
        ended.callback(leave.set)
        readers = [pool.submit(read) for _ in range(4)]
        entered.wait(LONGEST_SECONDS)
        more = [pool.submit(harness.app.test_client().get, "/v1/studies/habits?version=9") for _ in range(20)]
        # All wait at once: the clock goes on no further.
        clock.now += PATIENCE
        answers = [one.result(LONGEST_SECONDS) for one in more]
        # The study's bytes may be known without the database.
        assert {answer.status_code for answer in answers} <= {503, 404}
        assert harness.put(build_report(study)).status_code == 201
        assert harness.client.get("/readyz").status_code == 200
        with psycopg.connect(
            harness.collector.database.url.set(drivername="postgresql").render_as_string()
        ) as beside:
            count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            assert beside.execute(count).fetchone()[0] <= 4 + 2 + 1
        leave.set()
        for reader in readers:
            reader.result(LONGEST_SECONDS)
    assert harness.client.get("/v1/studies/habits").status_code == 200


def test_too_many_readers_get_retry_after():
    problem = problem_of(PoolTimeoutError("full"))
    assert problem.kind.status == 503
    assert int(problem.answer()[1]["Retry-After"]) > 0


def test_export_slots_are_limited_and_released(make_harness):
    harness = make_harness()
    harness.publish(build_study())
    harness.put(build_report(build_study()))
    path = "/v1/studies/habits/export"
    held = [harness.client.get(path, headers=harness.operator, buffered=False) for _ in range(8)]
    refused = harness.client.get(path, headers=harness.operator)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    for response in held:
        response.close()
    assert harness.export().status_code == 200
    # Read to their end, or asked for their head alone; nobody closes them.
    for _ in range(9):
        assert harness.exported()
        assert harness.client.head(path, headers=harness.operator).status_code == 200


def test_a_flood_of_deletions_splits_no_commit(make_harness):
    """Hundreds of deletions between uploads share transactions; each unknown one fails alone."""
    harness = make_harness(lock_timeout=LONGEST_SECONDS)
    study = build_study()
    harness.publish(study)
    gone, *reports = [build_report(study) for _ in range(41)]
    assert harness.put(gone).status_code == 201
    collector = harness.collector
    commits = []
    event.listen(collector.database.engine, "commit", lambda _connection: commits.append(1))
    with (
        closing(sqlite3.connect(harness.path, isolation_level=None)) as other,
        ThreadPoolExecutor(80) as pool,
    ):
        other.execute("BEGIN IMMEDIATE")
        first = pool.submit(harness.put, reports[0])
        time.sleep(0.05)
        unknown = [pool.submit(collector.writer.change, bytes([n] * 16), fail) for n in range(30)]
        uploads = [pool.submit(harness.put, report) for report in reports[1:]]
        wait_for(lambda: collector.writer.depth >= len(unknown) + len(uploads))
        other.execute("ROLLBACK")
        assert {one.result(LONGEST_SECONDS).status_code for one in (first, *uploads)} == {201}
        for one in unknown:
            with pytest.raises(ProblemError):
                one.result(LONGEST_SECONDS)
    assert len(commits) < 15
    assert len(harness.exported()) == 41


def fail(session):
    session.connection().exec_driver_sql("DELETE FROM reports")
    raise ProblemError(problem_of(OSError()).kind, "after a change that must not stay")


def test_uploads_behind_stuck_commit_are_refused_in_time(monkeypatch):
    begun, release = threading.Event(), threading.Event()

    def store(works):
        begun.set()
        return [release.wait(LONGEST_SECONDS)] * len(works)

    writer = Writer(store, lambda act: act(None), 99, lambda *_: None, PATIENCE)
    clock = Waits(monkeypatch, lambda: begun.wait(LONGEST_SECONDS) and not release.is_set())
    upload = Upload("s", [PackedReport(bytes(16), 1, b"x")])
    with raises(ProblemError, "unavailable", "may still take effect"):
        writer.upload(upload)
    waited = clock.now
    assert PATIENCE <= waited < PATIENCE + 0.1
    for _ in range(50):
        with raises(ProblemError, "unavailable"):
            writer.upload(upload)
    assert clock.now == waited
    release.set()
    wait_for(lambda: not writer.depth, LONGEST_SECONDS)
    assert writer.upload(upload) is True
    writer.close()


def test_moving_queue_is_waited_for(monkeypatch):
    """The last of twelve uploads waits ten times as long as one commit may take."""
    monkeypatch.setattr(writer_module, "MOST_AT_ONCE", 1)
    clock, last = Clock(), threading.get_ident()
    begun, done = threading.Semaphore(0), threading.Semaphore(0)
    left, seconds_of_one = 12, 0.9 * PATIENCE
    ends = seconds_of_one

    def store(works):
        begun.release()
        assert done.acquire(timeout=LONGEST_SECONDS)
        return [len(works)] * len(works)

    def wait(job, seconds):
        """The others know no clock; the last one's goes on while it waits, and commits end at their times."""
        nonlocal ends, left
        if threading.get_ident() != last:
            return job._pending.acquire(timeout=LONGEST_SECONDS)
        until = clock.now + seconds
        while ends <= until:
            clock.now, ends, left = ends, ends + seconds_of_one, left - 1
            done.release()
            if not left:
                return job._pending.acquire(timeout=LONGEST_SECONDS)
            assert begun.acquire(timeout=LONGEST_SECONDS)
        clock.now = until
        return False

    monkeypatch.setattr(writer_module, "time", clock)
    monkeypatch.setattr(writer_module._Job, "wait", wait)
    writer = Writer(store, lambda act: act(None), 99, lambda *_: None, PATIENCE)
    uploads = [Upload("s", [PackedReport(bytes([n] * 16), 1, b"x")]) for n in range(12)]
    with ThreadPoolExecutor(11) as pool:
        others = [pool.submit(writer.upload, upload) for upload in uploads[:11]]
        wait_for(lambda: writer.depth == 11, LONGEST_SECONDS)
        assert begun.acquire(timeout=LONGEST_SECONDS)
        assert writer.upload(uploads[11]) == 1
        assert [one.result(LONGEST_SECONDS) for one in others] == [1] * 11
    assert clock.now == pytest.approx(12 * seconds_of_one)
    writer.close()


def test_only_one_health_check_runs_at_a_time():
    release, count = threading.Event(), []

    def look():
        count.append(1)
        release.wait(LONGEST_SECONDS)

    looks = Looks(look)
    assert [looks.wait(0.01) for _ in range(20)] == [False] * 20
    assert len(count) == 1
    release.set()
    assert looks.wait(LONGEST_SECONDS)


def test_wrong_keys_are_limited_without_blocking_right_ones(make_harness, caplog, monkeypatch):
    # Nothing is gained back meanwhile, however long the requests take.
    monkeypatch.setattr(key_checks, "TokenBucket", lambda rate: TokenBucket(rate, lambda: 0.0))
    harness = make_harness()
    harness.publish(build_study())
    database = harness.collector.database
    reads = []
    event.listen(database.engine, "before_cursor_execute", lambda *_: reads.append(1))
    codes = [
        harness.client.get("/metrics", headers={"Authorization": f"Bearer wrong-{n}"}).status_code
        for n in range(400)
    ]
    assert codes[0] == 401
    assert codes[-1] == 429
    assert codes.count(401) == BURST_SECONDS * key_checks.WRONG_A_SECOND
    assert len(reads) < 350
    # Also a key that this process has never seen.
    time.sleep(0.2)
    with database.write() as session:
        key = add_key(session, "analyst", Role.READ)
    known = {"Authorization": f"Bearer {key}"}
    wait_for(lambda: harness.client.get("/metrics", headers=known).status_code == 200, LONGEST_SECONDS)
    text = harness.client.get("/metrics", headers=harness.operator).text
    assert "ldpkit_keys_refused_total 400.0" in text
    assert caplog.text.count("a key that this collector does not know") == 1
    assert "wrong-" not in caplog.text
    assert key not in caplog.text


def test_an_outage_is_logged_at_once_and_then_counted(caplog):
    clock = [0.0]
    seldom = ThrottledLog(lambda: clock[0])
    for _ in range(5000):
        seldom.log(30, "the database is away")
        seldom.log(40, "a request failed", OSError("x"))
    said = [record.getMessage() for record in caplog.records]
    assert said == ["the database is away", "a request failed\nbuiltins.OSError"]
    clock[0] = QUIET_SECONDS
    seldom.log(30, "the database is away")
    assert (
        caplog.records[-1].getMessage() == "the database is away (and 4999 times since this was last logged)"
    )


def test_a_full_disk_is_logged_once(caplog):
    class FullError(Exception):
        sqlite_errorcode = sqlite3.SQLITE_FULL

    for _ in range(100):
        assert problem_of(OperationalError("", None, FullError())).kind.status == 507
    assert [record.message for record in caplog.records] == [
        "the database's disk is full: nothing more is stored"
    ]


def test_uploads_to_migrated_database_are_logged_once(caplog):
    """Each upload meets the same error for as long as the old server runs."""
    for _ in range(5):
        assert problem_of(OtherReleaseError("the database was migrated to 9999")).kind.status == 503
    assert caplog.text.count("migrated to 9999") == 1
