"""A person answers on another person's device, and the report waiting there is sent with the wrong code.

Defence: `ldpkit answer`: gives a code only to a new report, and says if a code is not used. Known limit:
an app that calls `invite`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ldpkit.cli import main
from tests.ldp_client.devices import Server, consenting
from tests.ldp_client.issuers import Issuer, lost, study_of


@pytest.fixture
def laptop(tmp_path):
    """Makes a device on which Cy's report waits, with the given code or none."""
    with Server() as server, Issuer() as issuer:
        study = study_of(issuer.url)
        server.content = study.canonical()

        def with_code(code):
            device = consenting(tmp_path / "device", "8", server.url)
            device.answer(study, {"ever": True}, code)
            issuer.answers = [lost] if code else []
            device.flush(attempts=1)
            issuer.requests.clear()
            return device, issuer

        yield with_code


def answer(device, *more):
    folder, place = str(Path(device.ledger.path).parent), f"{device.collector}/v1/studies/survey"
    assert main(["answer", place, "--folder", folder, "--set", "ever=no", "--invitation", "ADA", *more]) != 0


def codes(issuer):
    return [headers.get("ldpkit-invitation", "") for _, _, headers in issuer.requests]


def test_waiting_report_uses_its_own_invitation(laptop, capsys):
    device, issuer = laptop("CY")
    answer(device, "--yes")
    assert codes(issuer) == ["CY"]
    said = capsys.readouterr().err
    assert "without any value given now" in said
    assert "the invitation given now is not used: survey was answered from here before" in said


def test_report_keeps_its_own_code_if_issuer_is_unreachable(laptop, capsys, monkeypatch):
    monkeypatch.setattr("ldp_client.device.sending.backoff", lambda _: 0.0)
    device, issuer = laptop("CY")
    issuer.answers = [lost] * 5
    answer(device, "--yes")
    assert set(codes(issuer)) == {"CY"}
    assert device.ledger.queued()[0].invitation == "CY"
    assert "the invitation given now is not used" in capsys.readouterr().err


def test_waiting_report_without_code_does_not_get_a_new_one(laptop, capsys):
    device, issuer = laptop("")
    answer(device, "--yes")
    assert "ADA" not in codes(issuer)
    assert "the invitation given now is not used" in capsys.readouterr().err
