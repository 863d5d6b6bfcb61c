"""Answers on somebody else's device, to have the report that waits there leave under another one's code.

Defence: `ldpkit answer`: gives a code to a new report alone, and says where one is not used. Known limit:
an app that calls `invite`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ldp_client.cli import main
from tests.ldp_client.devices import Server, consenting
from tests.ldp_client.issuers import Issuer, lost, study_of


@pytest.fixture
def laptop(tmp_path):
    """Where Cy's report waits, as its issuer was away; makes one with another code, or none."""
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


def test_the_reports_own_code_is_asked_with(laptop, capsys):
    device, issuer = laptop("CY")
    answer(device, "--yes")
    assert codes(issuer) == ["CY"]
    said = capsys.readouterr().err
    assert "nothing of what was given now" in said
    assert "the invitation given now is not used: survey was answered from here before" in said


def test_where_the_issuer_is_away_still_the_report_keeps_its_own(laptop, capsys, monkeypatch):
    monkeypatch.setattr("ldp_client.device.sending.backoff", lambda _: 0.0)
    device, issuer = laptop("CY")
    issuer.answers = [lost] * 5
    answer(device, "--yes")
    assert set(codes(issuer)) == {"CY"}
    assert device.ledger.queued()[0].invitation == "CY"
    assert "the invitation given now is not used" in capsys.readouterr().err


def test_a_report_without_a_code_gets_none(laptop, capsys):
    device, issuer = laptop("")
    answer(device, "--yes")
    assert "ADA" not in codes(issuer)
    assert "the invitation given now is not used" in capsys.readouterr().err
