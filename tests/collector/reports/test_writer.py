"""One writer a process: what gathers is committed together, and a stuck commit holds nobody up."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from collector.problems import UNAVAILABLE, ProblemError
from collector.reports import writer as writer_module
from collector.reports.intake import Receipt
from collector.reports.writer import Change, Upload, Writer
from collector.store import PackedReport
from tests.kit.collectors import WatchedQueue, build_report
from tests.kit.errors import raises


def upload(*numbers, study="s"):
    return Upload(study, [PackedReport(bytes([number] * 16), 1, b"x") for number in numbers])


@pytest.fixture
def gate():
    """A store that waits until it may go on, and remembers what it was given."""

    def store(works):
        store.entered.release()
        assert store.open.acquire(timeout=20)
        store.groups.append(list(works))
        return [len(one.reports) if isinstance(one, Upload) else 0 for one in works]

    store.entered, store.open, store.counted = (threading.Semaphore(0) for _ in range(3))
    store.groups = []
    return store


@pytest.fixture
def make_writer(gate):
    made = []

    def make(store=gate, capacity=1000, patience=20.0):
        def observe(_seconds, _waiting):
            gate.counted.release()

        made.append(Writer(store, lambda action: action(None), capacity, observe, patience))
        made[-1]._queue = WatchedQueue()
        return made[-1]

    yield make
    for writer in made:
        writer.close()


def test_uploads_during_a_commit_are_committed_together(make_writer, gate):
    """Unless too many wait. So are deletions; what an operator does keeps its place among them."""
    writer = make_writer(capacity=9)
    with ThreadPoolExecutor(12) as pool:
        works = [pool.submit(writer.upload, upload(0))]
        assert gate.entered.acquire(timeout=20)
        works += [pool.submit(writer.upload, upload(number)) for number in range(1, 9)]
        works += [pool.submit(writer.change, ("other", bytes(16)), str)]
        writer._queue.wait_until(10)
        with raises(ProblemError, "overloaded") as caught:
            writer.upload(upload(9))
        assert caught.value.answer()[1]["Retry-After"] == "1"
        works += [pool.submit(writer.act, lambda _session: len(gate.groups))]
        writer._queue.wait_until(11)
        works += [pool.submit(writer.upload, upload(*range(50), study="third"))]
        writer._queue.wait_until(12)
        gate.open.release(3)
        assert [done.result(20) for done in works] == [*[1] * 9, 0, 2, 50]
    assert [len(group) for group in gate.groups] == [1, 9, 1]
    assert writer.depth == 0


def test_an_error_reaches_only_the_uploads_of_its_commit():
    """Of the database, and of the metrics, which no upload waits for."""
    failures = iter([OperationalError("", None, Exception("away"))])

    def store(uploads):
        for error in failures:
            raise error
        return [1 for _ in uploads]

    observe = Mock(side_effect=OSError("no room for counts"))
    writer = Writer(store, lambda action: action(None), 10, observe, 20.0)
    with pytest.raises(OperationalError):
        writer.upload(upload(1))
    assert writer.upload(upload(1)) == 1
    assert writer.depth == 0
    writer.close()


@pytest.fixture
def clock(monkeypatch):
    """Takes the place of `time` in the writer: it stands until it is moved, and tells of each reading."""

    def monotonic():
        made.read.release()
        return made.now

    made = SimpleNamespace(now=0.0, read=threading.Semaphore(0), monotonic=monotonic)
    monkeypatch.setattr(writer_module, "time", made)
    return made


PATIENCE = 0.05


@pytest.mark.attack(15)
def test_uploads_behind_stuck_commit_are_refused_in_time(make_writer, gate, clock):
    """A commit hangs in the database; uploads behind it must be refused in time, not wait forever."""
    writer = make_writer(patience=PATIENCE)
    with ThreadPoolExecutor(1) as pool:
        stuck = pool.submit(writer.upload, upload(1))
        assert gate.entered.acquire(timeout=20)
        clock.now = 1.1 * PATIENCE
        with raises(ProblemError, "unavailable", "may still take effect"):
            stuck.result(20)
        for _ in range(50):
            with raises(ProblemError, "unavailable"):
                writer.upload(upload(2))
        gate.open.release(2)
        assert gate.counted.acquire(timeout=20)
        assert not writer.depth
        assert writer.upload(upload(3)) == 1


def test_moving_queue_is_waited_for(make_writer, gate, clock, monkeypatch):
    """The last of six uploads waits five times as long as one commit may take."""
    monkeypatch.setattr(writer_module, "MOST_AT_ONCE", 1)

    def store(works):
        stored = gate(works)
        clock.now += 0.9 * PATIENCE
        return stored

    writer = make_writer(store, patience=PATIENCE)
    with ThreadPoolExecutor(6) as pool:
        uploads = [pool.submit(writer.upload, upload(number)) for number in range(6)]
        writer._queue.wait_until(6)
        for _ in uploads:
            assert gate.entered.acquire(timeout=20)
            # All who wait have looked at the clock during this commit.
            clock.read = threading.Semaphore(0)
            for _ in range(25):
                assert clock.read.acquire(timeout=20)
            gate.open.release()
        assert [one.result(20) for one in uploads] == [1] * 6
    assert clock.now == pytest.approx(6 * 0.9 * PATIENCE)


@pytest.mark.attack(15)
def test_a_flood_of_deletions_splits_no_commit(habits, study):
    """A flood of deletions between uploads must share their transactions; each unknown one fails alone."""

    def fail(session):
        session.connection().exec_driver_sql("DELETE FROM reports")
        raise ProblemError(UNAVAILABLE, "after a change that must not stay")

    rules, commits = habits.collector.rules.find("habits", 1), []
    uploads = [Upload("habits", [rules.pack(build_report(study))]) for _ in range(40)]
    floods = [Change(("habits", bytes([n] * 16)), fail) for n in range(30)]
    event.listen(habits.collector.database.engine, "commit", lambda _connection: commits.append(1))
    outcomes = habits.collector.writer._store([*uploads[:20], *floods, *uploads[20:]])
    assert outcomes[:20] + outcomes[50:] == [[Receipt.STORED]] * 40
    assert {type(outcome) for outcome in outcomes[20:50]} == {ProblemError}
    # The day's upkeep has two.
    assert len(commits) == 4
    assert len(habits.exported()) == 40
