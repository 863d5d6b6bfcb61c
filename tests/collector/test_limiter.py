"""What limits work at once, rates of uploads, values that are costly to compute, and lines in the log."""

from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from collector import limiter
from tests.kit.answers import problem
from tests.kit.collectors import build_report, build_study


def test_room_is_waited_for_unless_nothing_is_given_back(monkeypatch):
    now, waits = [0.0], []
    room = limiter.Limiter(100, 2, lambda: OSError("full"))

    def wait(seconds):
        waits.append(seconds)
        now[0] += seconds

    # Time goes on only while the room waits.
    monkeypatch.setattr(limiter, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(room._changed, "wait", wait)
    with room.hold(1000):
        now[0] = 0.5
        # The second one is refused at once.
        for _ in range(2):
            with pytest.raises(OSError, match="full"), room.hold(1):
                pass
        assert waits == [1.5]
    held = ExitStack()
    held.enter_context(room.hold(60))
    monkeypatch.setattr(room._changed, "wait", lambda _seconds: held.close())
    with room.hold(60):
        pass


def test_an_outage_is_logged_at_once_and_then_counted(caplog):
    clock = [0.0]
    seldom = limiter.ThrottledLog(lambda: clock[0])
    for _ in range(5000):
        seldom.log(30, "the database is away")
        seldom.log(40, "a request failed", OSError("x"))
    said = [record.getMessage() for record in caplog.records]
    assert said == ["the database is away", "a request failed\nbuiltins.OSError"]
    clock[0] = limiter.QUIET_SECONDS
    seldom.log(30, "the database is away")
    last = caplog.records[-1].getMessage()
    assert last == "the database is away (and 4999 times since this was last logged)"


def test_cached_value_is_kept_in_proportion_to_its_cost(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("collector.limiter.time.monotonic", lambda: now[0])
    computed = []

    def compute():
        now[0] += 2.0
        computed.append(now[0])
        return len(computed)

    recent = limiter.CostBoundCache(compute)
    assert [recent.get(), recent.get()] == [1, 1]
    now[0] += 2.0 * limiter.REST
    assert recent.get() == 2


@pytest.mark.attack(15)
def test_one_study_cannot_use_up_anothers_rate(make_harness, study):
    """Send more reports than the rate to one study: they get 429, and another study takes its own."""
    other = build_study(id="other")
    harness = make_harness(upload_rate=0.001, published=[study, other])
    assert harness.put(build_report(study)).status_code == 201
    response = harness.put(build_report(study))
    assert problem(response) == (429, "too-many-reports")
    assert int(response.headers["Retry-After"]) > 0
    # Without a look at it.
    assert harness.post([]).status_code == 429
    assert harness.put(build_report(other)).status_code == 201


def stored(bucket, reports):
    """0 once they are let in and stored; else the seconds to wait."""
    seconds = bucket.let_in(reports)
    if not seconds:
        bucket.take(reports)
    return seconds


def test_a_bucket_holds_a_burst_and_refills():
    now = [0.0]
    bucket = limiter.TokenBucket(2.0, lambda: now[0])
    burst = int(2 * limiter.BURST_SECONDS)
    assert [stored(bucket, 1) for _ in range(burst)] == [0.0] * burst
    assert stored(bucket, 1) == 0.5
    now[0] = 0.5
    assert stored(bucket, 1) == 0.0
    now[0] = 1e6
    assert [stored(bucket, 1) for _ in range(burst + 1)] == [0.0] * burst + [0.5]
    # A batch above the burst passes and leaves a debt. Uploads that are not stored use nothing up.
    bucket = limiter.TokenBucket(5.0, lambda: 0.0)
    assert [bucket.let_in(70_000) for _ in range(3)] == [0.0] * 3
    assert stored(bucket, 70_000) == 0.0
    assert stored(bucket, 1) == limiter.DEBT_SECONDS + 0.2
    assert stored(bucket, 70_000) == limiter.DEBT_SECONDS + limiter.BURST_SECONDS
