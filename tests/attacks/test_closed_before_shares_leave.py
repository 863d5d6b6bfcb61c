"""A secure sum is closed permanently, without a warning, while devices' shares wait for their window.

Defence: `node close`: warns and asks for confirmation; a device whose share a closed sum refused is
told that the sum takes no reports any more.
"""

from __future__ import annotations

import io
import json

import pytest

from ldp_client.device.outbox import Queued
from ldp_client.device.requests import Outcome
from ldp_client.device.verdicts import judged
from ldpkit.cli import main
from schemas import Study
from tests.ldp_client.issuers import channel_of
from tests.secure_sum.conftest import TOKEN, build_study


@pytest.fixture
def close(network, tmp_path, monkeypatch):
    """The command, of a study with windows of 24 hours or without."""
    monkeypatch.setenv("LDPKIT_TOKEN", TOKEN)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    plain = build_study("ever", nodes=[node.address for node in network.nodes])

    def run(*options, windows=True):
        fields = {"channel": channel_of("https://issuer.example")} if windows else {}
        study = Study({**plain.document, **fields})
        for node in network.nodes:
            node.publish(study)
        path = tmp_path / "study.json"
        path.write_text(json.dumps(study.document))
        out = str(tmp_path / "total.json")
        return main(["node", "close", str(path), "--same-token", "--out", out, *options])

    return run


def test_close_asks_for_confirmation_while_shares_may_wait(close, capsys):
    assert close() == 2
    said = capsys.readouterr().err
    assert "leave up to 48 hours after they were made" in said
    assert "needs --yes" in said


def test_close_with_yes_warns_and_continues(close, capsys):
    assert close("--yes") == 3
    said = capsys.readouterr().err
    assert "leave up to 48 hours" in said
    assert "has shares of only 0 devices" in said


def test_close_without_windows_needs_no_confirmation(close, capsys):
    assert close(windows=False) == 3
    said = capsys.readouterr().err
    assert "hours after" not in said
    assert "has shares of only 0 devices" in said


def told_of_closing(closes):
    nodes = "https://a.example https://b.example"
    report = Queued("00", nodes, "summed", "[]", document="d", closes=closes)
    refused = Outcome("refused", "closed", "study-closed", document="d", identity="k")
    return judged(report, refused, "k")


@pytest.mark.parametrize("closes", ["", "2999-01-01"])
def test_device_is_told_that_a_closed_sum_takes_no_reports(closes):
    told = told_of_closing(closes)
    assert told.state == "stuck"
    assert "accepts no further reports" in told.reason
    assert "until" not in told.reason
