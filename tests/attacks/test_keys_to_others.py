"""Slips with keys and addresses: all nodes' keys are sent to one of them, or links lead nowhere.

Defence: The command: sends one key or none, and rejects invalid addresses before anything is made.
"""

from __future__ import annotations

import pytest

from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server

KEY = "operators-token-0123456789"


@pytest.mark.parametrize(
    "keys", [f"{KEY} {KEY[::-1]}", f" {KEY}", f"{KEY}\n", f"{KEY}\r\nX-Odd: 1", "clé" * 9]
)
def test_list_of_keys_is_not_sent_to_one_server(keys, tmp_path, monkeypatch, capsys):
    """`ldpkit node close` takes them from LDPKIT_TOKEN, where every other command finds them too."""
    monkeypatch.setenv("LDPKIT_TOKEN", keys)
    path = tmp_path / "study.json"
    path.write_bytes(Study(studies.document(studies.YES_NO)).canonical())
    with Server() as server:
        for command in (
            ("status", "--collector"),
            ("invite", "habits", "--count", "2", "--collector"),
            ("publish", str(path), "--collector"),
            ("export", "habits", "--out", str(tmp_path / "out.ndjson"), "--collector"),
            ("export", "habits", "--summary", "--out", str(tmp_path / "out.json"), "--collector"),
        ):
            assert main([*command, server.url]) == 2
            assert "token" in capsys.readouterr().err
        assert server.requests == []


NOWHERE = (
    "ask.example.org",
    "javascript:alert(1)",
    "https://",
    "https://a?b=1",
    "https://a#b",
    "https://a b",
    "https://a:b",
    "https://[a",
)


@pytest.mark.parametrize("address", NOWHERE)
@pytest.mark.parametrize("option", ["--address", "--collector"])
def test_invite_rejects_wrong_addresses_before_any_request(address, option, monkeypatch, capsys):
    monkeypatch.setenv("LDPKIT_TOKEN", KEY)
    with Server() as server:
        places = {"--collector": server.url, option: address}
        options = [part for place in places.items() for part in place]
        assert main(["invite", "habits", "--count", "2", *options]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert "URL" in told.err or "no collector's address" in told.err
        assert server.requests == []
