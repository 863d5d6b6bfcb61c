"""A program that seeds `random` at each start and flushes once: chance must not be the same each time."""

import random

from ldp_client.device import clock
from ldp_client.device.exchange import backoff
from tests.ldp_client.devices import Server, consenting
from tests.oblivious.conftest import keys, relayed_study
from tests.oblivious.test_device import Relay
from tests.statistics import seed_the_system

__all__ = ["keys"]
HOURS = 100
# 100 fair coins show a side fewer than 20 times once in 10 ** 9.
LEAST = 20


def test_two_unsettled_reports_take_turns_despite_seed(tmp_path, keys, monkeypatch):
    seed_the_system(monkeypatch, "turns")
    with Server() as collector, Relay() as one, Relay() as other:
        device = consenting(tmp_path / "device", "9", collector.url)
        for name, relay in (("one", one), ("other", other)):
            device.answer(relayed_study(relay.url, keys, id=name), {"ever": True})
        begun = max(queued.due for queued in device.ledger.queued())
        for hour in range(HOURS):
            monkeypatch.setattr(clock, "now", lambda hour=hour: begun + 2 * 3600.0 * hour)
            random.seed(1)
            device.flush(1)
        tries = len(one.requests), len(other.requests)
    assert min(tries) >= LEAST, tries


def test_backoff_pauses_differ_despite_seed():
    drawn = set()
    for _ in range(3):
        random.seed(1)
        drawn.add(backoff(1))
    assert len(drawn) == 3
