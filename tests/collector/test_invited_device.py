"""A device that answers an invited study, against a real collector."""

from __future__ import annotations

import pytest

from collector.tickets.codes import make_tickets
from ldp_client import Device
from schemas import Study
from tests import studies
from tests.kit.collectors import ANSWERS
from tests.kit.serving import served


def answered(url, study, folder, ticket):
    device = Device(folder, "8", url)
    device.consent(study)
    device.answer(study, ANSWERS, ticket)
    return device


def test_a_ticket_lets_one_device_in(habits, study, tmp_path):
    """A wrong or used one costs nothing and can be replaced; the ledger forgets the one that was used."""
    with habits.collector.database.write() as session:
        first, second = make_tickets(session, study.id, 2, b"")
    with served(habits.app) as url:
        assert answered(url, study, tmp_path / "a", first).flush(attempts=1).sent == 1
        device = answered(url, study, tmp_path / "b", first)
        (before,) = device.ledger.queued()
        used = device.flush(attempts=1)
        assert (used.sent, used.waiting, used.refused) == (0, 1, [])
        assert "ticket" in used.reason
        device.give_ticket(study.id, second)
        (after,) = device.ledger.queued()
        assert after.body == before.body
        assert device.flush(attempts=1).sent == 1
    assert second.encode() not in (tmp_path / "b" / "ledger.sqlite3").read_bytes()


FIRST = Study(studies.document(studies.MEMOIZED))
SECOND = Study({**FIRST.document, "version": 2})


@pytest.mark.parametrize(
    ("tickets", "given", "kept"),
    [
        (("A", "B"), ("B", "A"), {1: "A", 2: "B"}),
        (("A", "B"), ("C",), {1: "A", 2: "C"}),
        (("A", "B"), ("C", ""), {1: "", 2: ""}),
        (("", "B"), ("C",), {1: "C", 2: "B"}),
    ],
)
def test_new_ticket_goes_to_one_waiting_report(tmp_path, tickets, given, kept):
    """First to a report without one, and to none if a report has it already."""
    device = Device(tmp_path / "device", "8", "http://127.0.0.1:9", require_consent=False)
    for asked, ticket in zip((FIRST, SECOND), tickets):
        device.answer(asked, {asked.questions[0].id: asked.questions[0].choices[0]}, ticket)
    for word in given:
        device.give_ticket(FIRST.id, word)
    assert {queued.version: queued.ticket for queued in device.ledger.queued()} == kept
