"""The reports of a device: when each leaves, and what a withdrawal wipes."""

import pytest

from ldp_client import Direct
from ldp_client.device import outbox
from ldp_client.device.outbox import plain_ticket
from ldp_client.documents.errors import LedgerError, RefusedError
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import STUDY, YES, cheap_study, consenting, problem
from tests.ldp_client.issuers import HOUR
from tests.statistics import follows

DAY = 24 * HOUR
NOON = 20_000 * DAY + 12 * HOUR


def test_batched_time_is_drawn_evenly_from_the_next_window(monkeypatch):
    monkeypatch.setattr(outbox, "now", lambda: float(NOON))
    drawn = [outbox.in_next_window(24) for _ in range(6000)]
    start = (NOON // DAY + 1) * DAY
    assert all(start <= moment < start + DAY for moment in drawn)
    hours = [sum((moment - start) // HOUR == hour for moment in drawn) for hour in range(24)]
    assert follows(hours, [1 / 24] * 24)
    assert not follows([2 * hours[0], *hours[1:]], [1 / 24] * 24)


@pytest.mark.attack(13)
def test_printed_queue_shows_no_secret(tmp_path):
    """An app's log or error report prints the waiting reports."""
    device = consenting(tmp_path, "4", "https://collector.example")
    device.answer(STUDY, YES, "“CODE”")
    (queued,) = device.ledger.queued()
    assert queued.ticket == "CODE"
    secrets = (queued.body, queued.secret, queued.report_id, queued.ticket)
    assert all(secrets)
    assert not [secret for secret in secrets if secret in repr([queued])]


def test_full_outbox_or_large_report_costs_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(outbox, "MOST_PENDING", 2)
    device = consenting(tmp_path, "4")
    for name in ("a", "b"):
        device.answer(cheap_study(name), YES)
    left = device.epsilon_left
    with raises(RefusedError, "device.outbox_full", "2"):
        device.answer(cheap_study("c"), YES)
    device.withdraw("a")
    monkeypatch.setattr(Direct, "most_report_bytes", 100)
    with raises(RefusedError, "device.report_large", "100"):
        device.answer(cheap_study("c"), YES)
    assert device.epsilon_left == left
    monkeypatch.undo()
    device.answer(cheap_study("c"), YES)


def test_a_damaged_body_is_not_sent(device, tmp_path, server):
    body = device.ledger.queued()[0].body.encode()
    file = tmp_path / "ledger.sqlite3"
    content = file.read_bytes()
    assert content.count(body) == 1
    file.write_bytes(content.replace(body, body.replace(b'"version":1', b'"version":2')))
    with raises(LedgerError, "device.report_changed"):
        device.flush()
    assert server.requests == []


@pytest.mark.parametrize(
    "given", [" CO DE\r\n", "CODE\u00a0", "“CODE”.", '"CODE"', "(CODE).", "https://a.example/s#ticket=CODE"]
)
def test_ticket_is_read_as_letters_print_it(given):
    assert plain_ticket(given) == "CODE"


@pytest.mark.attack(11)
def test_withdrawn_unsent_report_is_wiped_without_a_request(device, tmp_path, server):
    """Someone reads the ledger's file after the person withdrew."""
    (queued,) = device.ledger.queued()
    device.answer(cheap_study("kept"), YES)
    assert device.withdraw(STUDY.id) == 0
    assert device.flush().sent == 1
    assert server.asked("DELETE") == []
    for file in tmp_path.iterdir():
        assert queued.report_id.encode() not in file.read_bytes()
        assert queued.body.encode() not in file.read_bytes()


def test_deletion_is_retried_until_acknowledged(device, tmp_path, server):
    report_id = device.ledger.queued()[0].report_id
    assert device.flush().sent == 1
    assert device.withdraw(STUDY.id) == 1
    server.statuses = [503, 403]
    for _ in range(2):
        flushed = consenting(tmp_path, "4", server.url).flush(attempts=1)
        assert (flushed.deleted, flushed.undeleted) == (0, 1)
    assert consenting(tmp_path, "4", server.url).flush().deleted == 1
    assert server.asked("DELETE") == [f"/v1/studies/survey/reports/{report_id}"] * 3
    assert not any(vars(device.flush()).values())
    assert report_id.encode() not in (tmp_path / "ledger.sqlite3").read_bytes()


@pytest.mark.parametrize("final", [None, 404, 422])
def test_withdrawn_report_that_may_have_arrived_is_deleted_and_never_sent_again(tmp_path, server, final):
    """The first attempt may have been taken, and its answer lost; the next may be refused."""
    device = consenting(tmp_path, "4", server.url)
    report_id = device.answer(STUDY, YES)
    body = device.ledger.queued()[0].body
    server.statuses = [503]
    assert device.flush(attempts=1).waiting == 1
    if final:
        server.statuses, server.refusals = [final], {final: problem("report-invalid", STUDY.digest)}
        assert len(device.flush(attempts=1).refused) == 1
        assert device.ledger.queued() == []
        assert body.encode() not in (tmp_path / "ledger.sqlite3").read_bytes()
    attempts = len(server.asked("PUT"))
    assert device.withdraw(STUDY.id) == 1
    assert device.flush().deleted == 1
    assert server.asked("DELETE") == [f"/v1/studies/survey/reports/{report_id}"]
    assert len(server.asked("PUT")) == attempts


@pytest.mark.attack(12)
def test_ledger_does_not_keep_the_time_of_an_answer(tmp_path, server, monkeypatch):
    """Someone reads in the ledger, much later, when a person's report was to leave."""
    monkeypatch.setattr(outbox, "now", lambda: float(NOON))
    device = consenting(tmp_path, "4", server.url)
    device.answer(Study(studies.document(studies.YES_NO, channel={"batches": {"hours": 1}})), YES)
    (queued,) = device.ledger.queued()
    assert queued.due > NOON
    monkeypatch.setattr(outbox, "now", lambda: float(queued.due))
    assert device.flush().sent == 1
    with device.ledger.reading() as connection:
        assert connection.execute("SELECT state, due FROM reports").fetchall() == [("sent", 0)]
