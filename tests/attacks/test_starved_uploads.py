"""A server never settles some requests of a device, so that the others' turn never comes."""

from __future__ import annotations

import time

import pytest

from ldp_client.device import sending
from ldp_client.device.sending import PERIOD_SECONDS
from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server, consenting
from tests.statistics import seed_the_system

YES = {"ever": True}
# A minute's, fewer than real ones.
MOST_REQUESTS, MOST_DELETIONS = 6, 4


class Life:
    """A device whose clock and pauses take no time, and its collector."""

    def __init__(self, folder, server, monkeypatch):
        self.now = 1_000_000_000.0
        monkeypatch.setattr(time, "time", lambda: self.now)
        monkeypatch.setattr(sending, "sleep", lambda _seconds: None)
        monkeypatch.setattr(sending, "MOST_REQUESTS", MOST_REQUESTS)
        monkeypatch.setattr(sending, "MOST_DELETIONS", MOST_DELETIONS)
        self.device = consenting(folder, "4", server.url)

    def answer(self, name):
        self.device.answer(
            Study(studies.document(studies.with_epsilon(studies.YES_NO, "0.001"), id=name)), YES
        )

    def flush(self, later=PERIOD_SECONDS):
        self.now += later
        return self.device.flush()

    def withdrawn(self, count):
        """Send so many reports and take them back."""
        for number in range(count):
            self.answer(f"old{number}")
        while self.flush().waiting:
            pass
        assert sum(self.device.withdraw(f"old{number}") for number in range(count)) == count


@pytest.fixture
def server():
    with Server() as server:
        yield server


@pytest.fixture
def life(tmp_path, server, monkeypatch):
    return Life(tmp_path, server, monkeypatch)


@pytest.mark.parametrize("count", [2, MOST_REQUESTS + 1])
def test_unacknowledged_deletions_do_not_block_uploads(life, server, count):
    life.withdrawn(count)
    life.answer("new")
    server.stuck = "DELETE"
    server.requests.clear()
    flushed = life.flush()
    assert (flushed.sent, flushed.undeleted) == (1, count)
    assert server.requests[0][0] == "DELETE"
    assert len(server.asked("DELETE")) == MOST_DELETIONS


def test_unacknowledged_deletions_do_not_block_frequent_uploads(life, server):
    """A minute's requests become free one by one, and a deletion always asks first."""
    life.withdrawn(2)
    server.stuck = "DELETE"
    life.flush()
    sent = 0
    for number in range(10):
        life.answer(f"new{number}")
        sent += life.flush(later=PERIOD_SECONDS / MOST_REQUESTS).sent
    assert sent >= MOST_REQUESTS - MOST_DELETIONS


def test_unaccepted_reports_do_not_block_deletions(life, server):
    life.withdrawn(1)
    for number in range(MOST_REQUESTS + 1):
        life.answer(f"new{number}")
    server.stuck = "PUT"
    assert life.flush().deleted == 1


def test_stuck_reports_do_not_block_other_study(life, server, monkeypatch):
    """At once if each report can be tried once, else within minutes, as the choice is random."""
    seed_the_system(monkeypatch, "others")
    server.stuck = "PUT /v1/studies/new"
    for number in range(3):
        life.answer(f"new{number}")
    life.answer("other")
    assert life.flush().sent == 1
    for number in range(3, MOST_REQUESTS + 3):
        life.answer(f"new{number}")
    life.answer("another")
    # Missed by chance once in five, each time.
    assert any(life.flush().sent for _ in range(20))
