"""A report that can never leave is told from one that only waits, and is dropped 30 days after the study."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldp_client.device.outbox import Queued
from ldp_client.device.requests import Outcome
from ldp_client.device.verdicts import judged
from ldpkit.cli import main
from tests import studies
from tests.ldp_client.issuers import refusing
from tests.ldp_client.strata import device, server

__all__ = ["device", "server"]
STUDY = studies.document()["id"]
NODES = "https://a.example https://b.example"


@pytest.mark.parametrize(
    ("addresses", "closes", "final", "state"),
    [
        (NODES, "2000-01-01", False, "refused"),
        (NODES, "2999-01-01", False, "stuck"),
        (NODES, "", False, "stuck"),
        ("https://a.example", "2000-01-01", True, "refused"),
        ("https://a.example", "", True, "stuck"),
        ("https://a.example", "", False, "kept"),
    ],
)
def test_report_to_a_closed_study_is_stuck_or_dropped(addresses, closes, final, state):
    """A closed secure sum is closed for good, another study if its collector says so."""
    report = Queued("00", addresses, "summed", "[]", document="d", closes=closes)
    refused = Outcome("refused", "closed", "study-closed", document="d", identity="k", ended=final)
    assert judged(report, refused, "k").state == state


def test_device_with_stratum_without_key_reports_it_and_withdraws(device):
    """An issuer's refusal does not end a report, as the issuer may lie: a later token is taken."""
    device, issuer, names_another = device
    issuer.answers = [names_another]
    flushed = device.flush(attempts=5)
    assert (flushed.waiting, flushed.stuck, len(issuer.requests)) == (1, True, 1)
    assert "no report of that group can ever leave" in flushed.reason
    flushed = device.flush(attempts=1)
    assert (flushed.batched, flushed.stuck) == (1, False)
    device.withdraw(STUDY)
    assert not device.ledger.queued()


@pytest.mark.parametrize(
    ("refusal", "remedy"),
    [
        (None, "no report of that group can ever leave"),
        (refusing(409, "ticket-spent"), "for a new ticket, or withdraw"),
        (refusing(422, "token-key-unknown"), "ask the study's contact"),
    ],
)
def test_command_names_a_remedy_for_a_stuck_report(device, capsys, refusal, remedy):
    device, issuer, names_another = device
    issuer.answers = [refusal or names_another]
    folder = str(Path(device.ledger.path).parent)
    main(["answer", f"{device.collector}/v1/studies/{STUDY}", "--folder", folder])
    said = capsys.readouterr().err
    assert remedy in said
    assert "run again" not in said
