"""One writer a process: what gathers is committed together, and too much is refused."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.exc import OperationalError

from collector.problems import ProblemError
from collector.reports.limits import BURST_SECONDS, DEBT_SECONDS, TokenBucket, UploadLimits
from collector.reports.writer import Upload, Writer
from collector.storage.packing import PackedReport
from tests.kit.errors import raises


def upload(*numbers, study="s"):
    return Upload(study, [PackedReport(bytes([number] * 16), 1, b"x") for number in numbers])


class Gate:
    """A store that waits until it may go on, and remembers what it was given."""

    def __init__(self):
        self.entered = threading.Semaphore(0)
        self.open = threading.Semaphore(0)
        self.groups = []

    def __call__(self, uploads):
        self.entered.release()
        assert self.open.acquire(timeout=20)
        self.groups.append(list(uploads))
        return [len(one.reports) for one in uploads]


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def make_writer(gate):
    made = []

    def make(store=gate, capacity=1000, patience=20.0):
        made.append(
            Writer(store, lambda action: action(None), capacity, lambda _seconds, _waiting: None, patience)
        )
        return made[-1]

    yield make
    for writer in made:
        writer.close()


def wait_until(condition):
    event = threading.Event()
    for _ in range(2000):
        if condition():
            return
        event.wait(0.01)
    raise AssertionError("it never came to pass")


def test_uploads_during_a_commit_are_committed_together(make_writer, gate):
    writer = make_writer()
    uploads = [upload(number) for number in range(9)]
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(writer.upload, uploads[0])
        assert gate.entered.acquire(timeout=20)
        rest = [pool.submit(writer.upload, one) for one in uploads[1:]]
        wait_until(lambda: writer.depth == 9)
        gate.open.release(2)
        assert [done.result(20) for done in (first, *rest)] == [1] * 9
    assert [len(group) for group in gate.groups] == [1, 8]
    assert writer.depth == 0


def test_writer_rejects_uploads_while_too_many_wait(make_writer, gate):
    writer = make_writer(capacity=3)
    with ThreadPoolExecutor(2) as pool:
        large = pool.submit(writer.upload, upload(1, 2, 3, 4, 5))
        assert gate.entered.acquire(timeout=20)
        with raises(ProblemError, "overloaded") as caught:
            writer.upload(upload(6))
        assert caught.value.answer()[1]["Retry-After"] == "1"
        gate.open.release(2)
        assert large.result(20) == 5
        assert pool.submit(writer.upload, upload(6)).result(20) == 1


def test_commit_error_reaches_only_the_uploads_of_that_commit(make_writer):
    failures = iter([OperationalError("", None, Exception("away"))])

    def store(uploads):
        for error in failures:
            raise error
        return [1 for _ in uploads]

    writer = make_writer(store)
    with pytest.raises(OperationalError):
        writer.upload(upload(1))
    assert writer.upload(upload(1)) == 1
    assert writer.depth == 0


def test_writer_survives_a_metrics_error():
    def observe(_seconds, _waiting):
        raise OSError("no room for counts")

    writer = Writer(lambda uploads: [1] * len(uploads), lambda action: action(None), 10, observe, 20.0)
    assert [writer.upload(upload(1)) for _ in range(2)] == [1, 1]
    writer.close()


def test_problem_is_returned_only_to_its_upload(make_writer):
    def store(uploads):
        return [ValueError("no") if one.study == "bad" else 1 for one in uploads]

    writer = make_writer(store)
    assert writer.upload(upload(1)) == 1
    with pytest.raises(ValueError, match="no"):
        writer.upload(upload(1, study="bad"))


def test_actions_keep_their_order_among_uploads(make_writer, gate):
    writer = make_writer()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(writer.upload, upload(1))
        assert gate.entered.acquire(timeout=20)
        action = pool.submit(writer.act, lambda _session: len(gate.groups))
        wait_until(lambda: writer.depth == 2)
        after = pool.submit(writer.upload, upload(2))
        wait_until(lambda: writer.depth == 3)
        gate.open.release(2)
        assert (first.result(20), action.result(20), after.result(20)) == (1, 1, 1)


def test_a_closed_writer_has_written_everything(make_writer):
    written = []
    writer = make_writer(lambda uploads: written.extend(uploads) or [1] * len(uploads))
    assert writer.upload(upload(1)) == 1
    writer.close()
    assert len(written) == 1


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def stored(bucket, reports):
    """0 once they are let in and stored; else the seconds to wait."""
    seconds = bucket.let_in(reports)
    if not seconds:
        bucket.settle(reports, reports)
    return seconds


def test_a_bucket_holds_a_burst_and_refills():
    clock = Clock()
    bucket = TokenBucket(2.0, clock)
    burst = int(2 * BURST_SECONDS)
    assert [stored(bucket, 1) for _ in range(burst)] == [0.0] * burst
    assert stored(bucket, 1) == 0.5
    clock.now = 0.5
    assert stored(bucket, 1) == 0.0
    clock.now = 1e6
    assert [stored(bucket, 1) for _ in range(burst + 1)] == [0.0] * burst + [0.5]


def test_batch_above_the_burst_passes_and_leaves_a_debt():
    bucket = TokenBucket(5.0, Clock())
    assert stored(bucket, 70_000) == 0.0
    assert stored(bucket, 1) == DEBT_SECONDS + 0.2
    assert stored(bucket, 70_000) == DEBT_SECONDS + BURST_SECONDS


def test_rate_of_zero_limits_nothing():
    bucket = TokenBucket(0.0)
    assert stored(bucket, 10**9) == 0.0


def test_uploads_that_are_not_stored_use_no_rate():
    bucket = TokenBucket(1.0, Clock())
    for _ in range(100):
        assert bucket.let_in(70_000) == 0.0
        assert bucket.let_in(1) == 0.0
        bucket.settle(1, 0)
        bucket.settle(70_000, 0)
    assert stored(bucket, 10) == 0.0


def test_batch_in_progress_delays_further_batches():
    bucket = TokenBucket(1.0, Clock())
    assert bucket.let_in(10) == 0.0
    assert bucket.let_in(10) == 10.0
    bucket.settle(10, 0)
    assert bucket.let_in(10) == 0.0


def take(limits, study, reports):
    with limits.letting_in(study, reports) as taken:
        taken.count = reports


def test_one_study_cannot_use_up_anothers_rate():
    limits = UploadLimits(2.0, Clock())
    take(limits, "a", 10)
    with raises(ProblemError, "too-many-reports") as caught:
        take(limits, "a", 1)
    assert caught.value.answer()[1]["Retry-After"] == "1"
    with raises(ProblemError, "too-many-reports"):
        limits.require_some("a")
    take(limits, "b", 10)


def test_one_study_can_use_the_rate_that_others_leave():
    clock = Clock()
    limits = UploadLimits(2.0, clock)
    for _ in range(4):
        take(limits, "a", 10)
        clock.now += 6.0
    take(limits, "b", 10)


def test_other_studies_do_not_use_up_a_studys_rate():
    clock = Clock()
    limits = UploadLimits(2.0, clock)
    for study in "bc":
        take(limits, study, 10)
    for _ in range(5):
        with raises(ProblemError, "too-many-reports"):
            take(limits, "a", 10)
    clock.now += 5.0
    take(limits, "a", 10)


def test_failed_upload_uses_no_rate():
    limits = UploadLimits(2.0, Clock())
    for _ in range(3):
        with pytest.raises(OSError, match="no disk"), limits.letting_in("a", 10):
            raise OSError("no disk")
    take(limits, "a", 10)


def test_an_upload_above_the_rate_is_429(make_harness, study, make_report):
    harness = make_harness(upload_rate=0.001)
    harness.publish(study)
    reports = [make_report(study) for _ in range(2)]
    assert harness.put(reports[0]).status_code == 201
    response = harness.put(reports[1])
    assert response.status_code == 429
    assert response.get_json(force=True)["type"] == "urn:ldpkit:problem:too-many-reports"
    assert int(response.headers["Retry-After"]) > 0
    # Without a look at it.
    assert harness.post([]).status_code == 429
