"""A report that an issuer refuses is kept, with what the person can do."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldpkit.cli import main
from tests import studies
from tests.ldp_client.issuers import refusing
from tests.ldp_client.strata import device, server

__all__ = ["device", "server"]
STUDY = studies.document()["id"]


def test_device_with_stratum_without_key_reports_it_and_withdraws(device):
    """An issuer's refusal does not end a report, as the issuer may lie: a later token is taken."""
    device, issuer, names_another = device
    issuer.answers = [names_another]
    flushed = device.flush(attempts=5)
    assert (flushed.waiting, len(issuer.requests)) == (1, 1)
    assert "no report of that group can ever leave" in flushed.reason
    assert device.flush(attempts=1).scheduled == 1
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
def test_command_names_a_remedy_for_a_refused_ticket(device, capsys, refusal, remedy):
    device, issuer, names_another = device
    issuer.answers = [refusal or names_another]
    folder = str(Path(device.ledger.path).parent)
    main(["answer", f"{device.collector}/v1/studies/{STUDY}", "--folder", folder])
    assert remedy in capsys.readouterr().out
