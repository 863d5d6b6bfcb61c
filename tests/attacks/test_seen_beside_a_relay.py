"""The collector sees a device's address directly, just before or while its report comes through the relay.

Defence: The device: each request that shows its address counts as a visit, and no command
fetches an answered study while a relay is waited for (once that is due for 30 days chance takes turns, and
nothing answered is fetched within an hour of whatever left through a relay:
`test_held_back_by_a_dead_relay.py`), nor does what was tried in the clear before leave within that hour; a
flush sends in the clear or through a relay, and there one request. In JavaScript a study that was not
fetched with `fetchStudy(…, device)`, and reports in the clear before the first one of a study with a
channel, count only where the app calls `visited`.
"""

import os
import random

import pytest

from ldp_client.cli import main
from ldp_client.device import beside, clock, outbox, sending
from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server, consenting
from tests.oblivious.conftest import keys, relayed_study
from tests.oblivious.test_device import Relay

__all__ = ["keys"]
YES = {"ever": True}
HOUR = 3600


@pytest.fixture
def places():
    with Server() as collector, Relay() as relay:
        yield collector, relay


@pytest.fixture
def at(monkeypatch):
    def move(moment):
        monkeypatch.setattr(clock, "now", lambda: float(moment))

    return move


def test_flush_does_not_mix_relayed_and_direct_reports(tmp_path, places, keys, at):
    collector, relay = places
    device = consenting(tmp_path / "device", "9", collector.url)
    relayed = relayed_study(relay.url, keys)
    plain = Study({**studies.document(studies.YES_NO), "id": "plain"})
    device.answer(relayed, YES)
    device.answer(plain, YES)
    at(max(queued.due for queued in device.ledger.queued()))
    device.flush(1)
    assert not (collector.requests and relay.requests)


@pytest.mark.slow
def test_direct_retry_is_not_sent_minutes_after_relayed_report(tmp_path, places, keys, at, monkeypatch):
    """Neither report is settled, the device flushes every ten minutes, and each report has its turn."""
    collector, relay = places
    collector.stuck = "PUT"
    monkeypatch.setattr(beside, "CHANCE", random.Random(30))
    device = consenting(tmp_path / "device", "9", collector.url)
    device.answer(relayed_study(relay.url, keys), YES)
    device.answer(Study({**studies.document(studies.YES_NO), "id": "plain"}), YES)
    start = max(queued.due for queued in device.ledger.queued())
    seen, relayed = [], []
    for step in range(200):
        at(start + 600 * step)
        before = len(collector.requests), len(relay.requests)
        flushed = device.flush(1)
        seen += [step] if len(collector.requests) > before[0] else []
        relayed += [step] if len(relay.requests) > before[1] else []
        assert flushed.likely + flushed.scheduled == 2
    assert len(seen) > 5
    assert len(relayed) > 5
    assert not [step for step in seen if {*range(step - 5, step + 1)} & {*relayed}]


def test_restarted_device_remembers_its_fetch(tmp_path, places, keys, at):
    collector, relay = places
    study = relayed_study(relay.url, keys)
    collector.content = study.to_json().encode()
    device = consenting(tmp_path / "device", "9", collector.url)
    device.answer(device.fetch(study.id), YES)
    due = device.ledger.queued()[0].due
    at(due - 10)
    device.fetch(study.id)
    at(due)
    consenting(tmp_path / "device", "9", collector.url).flush(1)
    assert relay.requests == []
    at(due + 2 * HOUR)
    consenting(tmp_path / "device", "9", collector.url).flush(1)
    assert len(relay.requests) == 1


def test_relayed_report_is_not_sent_minutes_after_direct_one(tmp_path, places, keys, at):
    collector, relay = places
    device = consenting(tmp_path / "device", "9", collector.url)
    device.answer(relayed_study(relay.url, keys), YES)
    (queued,) = device.ledger.queued()
    at(queued.due - 60)
    device.answer(Study({**studies.document(studies.YES_NO), "id": "plain"}), YES)
    device.flush(1)
    at(queued.due)
    assert device.flush(1).batched == 1
    assert relay.requests == []


@pytest.mark.parametrize("what", ["report", "deletion", "deletion now"])
def test_retrying_flush_respects_visit_in_between(tmp_path, places, keys, at, monkeypatch, what):
    """The relay is away, the person opens the app, and an earlier background flush tries again."""
    collector, relay = places
    study = relayed_study(relay.url, keys)
    collector.content = study.to_json().encode()
    device, app = (consenting(tmp_path / "device", "9", collector.url) for _ in range(2))
    device.answer(study, YES)
    at(device.ledger.queued()[0].due)
    if what != "report":
        device.flush(1)
        device.withdraw(study.id)
        with device.ledger.reading() as connection:
            (deletion,) = outbox.withdrawn(connection)
        at(deletion.due or clock.now())
    before = len(relay.requests)
    monkeypatch.setattr(sending, "backoff", lambda _: bool(app.fetch(study.id)) * 0.0)
    flushed = device.flush(3, now=what == "deletion now")
    assert len(relay.requests) - before == (3 if what == "deletion now" else 1)
    if what != "deletion now":
        assert flushed.waiting + flushed.undeleted == 1
        assert "before " in flushed.reason


@pytest.mark.slow
def test_answer_command_for_answered_study_fetches_nothing(tmp_path, places, keys, at, capsys):
    """A script that runs the command daily would hold back the relayed report forever."""
    collector, relay = places
    device = consenting(tmp_path / "device", "9", collector.url)
    plain = Study({**studies.document(studies.YES_NO), "id": "plain"})
    device.answer(plain, YES)
    device.flush(1)
    device.answer(relayed_study(relay.url, keys), YES)
    collector.content = plain.to_json().encode()
    collector.requests.clear()
    at(max(queued.due for queued in device.ledger.queued()) + 3 * HOUR)
    url = f"{collector.url}/v1/studies/plain"
    assert main(["answer", url, "--set", "ever=yes", "--yes", "--folder", str(tmp_path / "device")]) != 0
    assert [request for request in collector.requests if "GET" in str(request)] == []
    assert "link your address" in capsys.readouterr().err


def test_report_held_after_visit_states_until_when(tmp_path, places, keys, at):
    collector, relay = places
    study = relayed_study(relay.url, keys)
    collector.content = study.to_json().encode()
    device = consenting(tmp_path / "device", "9", collector.url)
    device.answer(study, YES)
    at(device.ledger.queued()[0].due)
    device.fetch(study.id)
    flushed = device.flush(1)
    assert flushed.batched == 1
    assert "before " in flushed.reason


def test_unsettled_direct_report_does_not_block_relay(tmp_path, places, keys, at, monkeypatch):
    draws, plain = random.Random(21), os.urandom
    monkeypatch.setattr(clock.os, "urandom", lambda size: draws.randbytes(size) if size == 6 else plain(size))
    monkeypatch.setattr(beside, "CHANCE", draws)
    collector, relay = places
    device = consenting(tmp_path / "device", "9", collector.url)
    device.answer(relayed_study(relay.url, keys), YES)
    device.answer(Study({**studies.document(studies.YES_NO), "id": "plain"}), YES)
    collector.stuck = "PUT"
    begun = max(queued.due for queued in device.ledger.queued())
    # Whoever flushes every ten minutes.
    for step in range(100):
        before = (len(collector.requests), len(relay.requests))
        at(begun + 600 * step)
        device.flush(1)
        now = (len(collector.requests), len(relay.requests))
        assert before[0] == now[0] or before[1] == now[1]
    assert len(relay.requests) > 1
    assert len(collector.requests) > 2
