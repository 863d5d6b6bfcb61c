"""What limits work at once, values that are costly to compute, and lines in the log."""

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from collector import limiter
from collector.limiter import QUIET_SECONDS, REST, CostBoundCache, Limiter, ThrottledLog


def test_bodies_wait_for_memory_and_are_refused_after_timeout():
    room = Limiter(100, 0.05, lambda: OSError("full"))
    with room.hold(1000), pytest.raises(OSError, match="full"):
        room.take(1)
    room = Limiter(100, 60.0, lambda: OSError("full"))
    with ThreadPoolExecutor(1) as pool:
        room.take(60)
        second = pool.submit(room.take, 60)
        time.sleep(0.05)
        assert not second.done()
        room.give_back(60)
        second.result(60)


def test_full_room_without_progress_refuses_at_once(monkeypatch):
    now, waits = [0.0], []
    room = Limiter(1, 2, lambda: OSError("full"))

    def wait(seconds):
        waits.append(seconds)
        now[0] += seconds

    # Time goes on only while the room waits.
    monkeypatch.setattr(limiter, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(room._changed, "wait", wait)
    room.take()
    now[0] = 0.5
    with pytest.raises(OSError, match="full"):
        room.take()
    assert waits == [1.5]
    with pytest.raises(OSError, match="full"):
        room.take()
    assert waits == [1.5]


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


def test_cached_value_is_kept_in_proportion_to_its_cost(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("collector.limiter.time.monotonic", lambda: now[0])
    computed = []

    def compute():
        now[0] += 2.0
        computed.append(now[0])
        return len(computed)

    recent = CostBoundCache(compute)
    assert [recent.get(), recent.get()] == [1, 1]
    now[0] += 2.0 * REST
    assert recent.get() == 2
