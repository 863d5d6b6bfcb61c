"""An operator's commands against servers that stall, never end or answer something else."""

from __future__ import annotations

import json

import pytest

from ldp_client.device import http
from ldp_client.documents import report
from ldp_client.documents.errors import TransferError
from ldpkit.cli import aggregator as nodes
from ldpkit.cli import client, exporting, main
from ldpkit.cli.client import Client
from ldpkit.cli.exporting import fetch_reports, fetch_summary
from tests.kit.errors import raises
from tests.kit.stalling import STALLS, raw_server, stalling_server
from tests.ldp_client.devices import STUDY, Server

KEY = "operators-token-0123456789"
SUMMARY = b'{"format":"ldpkit.summary/1"}'
COMMANDS = {
    "export": lambda url: list(fetch_reports(Client(url, "key"), "survey")),
    "summary": lambda url: fetch_summary(Client(url, "key"), "survey"),
    "node": lambda url: nodes.NodeClient(url, "key", "survey").get(""),
}


@pytest.mark.attack(15)
@pytest.mark.parametrize(
    ("command", "stall"),
    [
        ("export", STALLS["silent"]),
        ("summary", STALLS["dripping body"]),
        ("node", STALLS["silent"]),
    ],
)
def test_stalling_server_does_not_hold_operator_command(monkeypatch, command, stall):
    """A server is silent or sends a byte now and then, to hold up an operator's command."""
    for module, name in (
        (client, "SILENCE_SECONDS"),
        (exporting, "SUMMARY_SECONDS"),
        (nodes, "DEADLINE_SECONDS"),
    ):
        monkeypatch.setattr(module, name, 0.3)
    monkeypatch.setattr(http, "FIRST_DELAY_SECONDS", 0.01)
    code = "server.unavailable" if command == "export" else "server.no_whole_answer"
    with stalling_server(*stall) as url, raises(TransferError, code):
        COMMANDS[command](url)


@pytest.mark.attack(15)
def test_endless_line_is_not_kept_in_memory(monkeypatch):
    """A server sends one line without end, to fill the memory of the machine that exports."""
    monkeypatch.setattr(report, "MAX_BYTES", 1 << 20)
    sent = []

    def endless(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(1000):
            connection.sendall(b"x" * (1 << 16))
            sent.append(1 << 16)

    with raw_server(endless) as url, raises(TransferError, "server.line_too_long"):
        list(fetch_reports(Client(url, "key"), "survey"))
    assert sum(sent) < 16 << 20


@pytest.fixture
def server():
    with Server(SUMMARY) as started:
        yield started


@pytest.mark.parametrize("body", [b"", b"<html>Sign in</html>", b'{"format":1}', b"\xff"])
def test_invalid_summary_is_rejected(server, body):
    server.content = body
    with raises(TransferError, "server.answer_not_json"):
        fetch_summary(Client(server.url, "key"), "survey")


def test_operator_key_for_local_server_bypasses_proxy(server, monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert fetch_summary(Client(server.url, "key"), "survey") == json.loads(SUMMARY)


@pytest.mark.attack(14)
@pytest.mark.parametrize("keys", [f"{KEY} {KEY[::-1]}", f"{KEY}\r\nX-Odd: 1", "clé" * 9])
def test_list_of_keys_is_not_sent_to_one_server(server, keys, tmp_path, monkeypatch):
    """LDPKIT_TOKEN has the keys of all nodes for `ldpkit node close`; others would send them to one."""
    monkeypatch.setenv("LDPKIT_TOKEN", keys)
    path = tmp_path / "study.json"
    path.write_bytes(STUDY.canonical())
    for command in (
        ("status",),
        ("invite", "habits", "--count", "2"),
        ("publish", str(path)),
        ("export", "habits", "--out", str(tmp_path / "out.ndjson")),
    ):
        assert main([*command, "--collector", server.url]) == 2
    assert server.requests == []


@pytest.mark.parametrize("address", ["ask.example.org", "javascript:alert(1)", "https://a?b=1", "https://[a"])
@pytest.mark.parametrize("option", ["--address", "--collector"])
def test_invite_rejects_wrong_addresses_before_any_request(server, address, option, monkeypatch, capsys):
    monkeypatch.setenv("LDPKIT_TOKEN", KEY)
    places = {"--collector": server.url, option: address}
    options = [part for place in places.items() for part in place]
    assert main(["invite", "habits", "--count", "2", *options]) == 2
    assert capsys.readouterr().out == ""
    assert server.requests == []
