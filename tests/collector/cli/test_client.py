"""An operator's commands send no key in clear, and withstand servers that stall or are no collector."""

import json
import socket
from email.message import Message

import pytest

from ldp_client.device.http import Answer
from ldp_client.documents import report
from ldp_client.documents.errors import TransferError, UsageError
from ldpkit.cli import client, exporting, main
from ldpkit.cli.client import Client
from ldpkit.cli.exporting import fetch_reports, fetch_summary
from tests.kit.errors import raises
from tests.kit.operators import URL
from tests.kit.serving import STALLS
from tests.ldp_client import devices
from tests.ldp_client.devices import STUDY

server = devices.server
KEY = "operators-token-0123456789"
FETCH = {
    "export": lambda url: list(fetch_reports(Client(url, "key"), "survey")),
    "summary": lambda url: fetch_summary(Client(url, "key"), "survey"),
}


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("LDPKIT_TOKEN", KEY)


@pytest.mark.attack(14)
def test_clients_refuse_to_send_keys_over_http(monkeypatch):
    """Read an operator's key in transit, because a command was given http: no host is even looked up."""
    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, lambda *_asked, **_more: pytest.fail("a host is looked up"))
    with raises(UsageError, "device.collector_https"):
        Client("http://survey.example", KEY)


@pytest.mark.attack(15)
@pytest.mark.usefixtures("never_pause")
@pytest.mark.parametrize(("command", "stall"), [("export", "silent"), ("summary", "dripping body")])
def test_stalling_server_does_not_hold_operator_command(monkeypatch, command, stall, stalling_server):
    """A server is silent or sends a byte now and then, to hold up an operator's command."""
    monkeypatch.setattr(client, "SILENCE_SECONDS", 0.3)
    monkeypatch.setattr(exporting, "SUMMARY_SECONDS", 0.3)
    code = "server.unavailable" if command == "export" else "server.no_whole_answer"
    url = stalling_server(*STALLS[stall])
    with raises(TransferError, code):
        FETCH[command](url)


@pytest.mark.attack(15)
def test_endless_line_is_not_kept_in_memory(monkeypatch, endless_server):
    """A server sends one line without end, to fill the memory of the machine that exports."""
    monkeypatch.setattr(report, "MAX_BYTES", 1 << 20)
    url, sent = endless_server(b"HTTP/1.1 200 OK\r\n\r\n", b"x")
    with raises(TransferError, "server.line_too_long"):
        FETCH["export"](url)
    assert sum(sent) < 16 << 20


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


@pytest.mark.parametrize("option", ["--address", "--collector"])
def test_invite_rejects_wrong_addresses_before_any_request(server, option, capsys):
    places = {"--collector": server.url, option: "https://a?b=1"}
    options = [part for place in places.items() for part in place]
    assert main(["invite", "habits", "--count", "2", *options]) == 2
    assert capsys.readouterr().out == ""
    assert server.requests == []


COMMANDS = (
    ("status",),
    ("status", "habits"),
    ("invite", "habits", "--count", "2"),
    ("keys", "ann", "--role", "read"),
    ("keys",),
    ("status", "--log"),
    ("delete", "habits", "--yes"),
    ("export", "habits", "--out", "summary.json"),
)
CLEAR = "\x1b[2J\x1b[1;1H\u202e\r\n"
STATUS = {
    **{"id": "habits", "version": 1, "title": "Habits", "state": "open", "reports": 0, "summed": False},
    **dict.fromkeys(("opens", "closes", "days_left", "tickets_left", "posterior")),
    **{"by_day": [], "versions": [], "refused": {}, "attention": []},
}
WRONG = (
    b"[" * 50_000,
    b"<html>Sign in</html>",
    [1],
    {"studies": [[]], "keys": ["ann"], "entries": [7], "attention": [], "key": CLEAR, "version": CLEAR},
    {**STATUS, "studies": [STATUS, {"id": "other"}], "reports": 10**400, "key": ["a"], "version": "1"},
    {**STATUS, "by_day": [{"day": 3}], "keys": [{"name": CLEAR}], "entries": [{"at": None}], "tickets": []},
)


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a command that gets this answer: its exit code, and what it prints."""

    def run(command, said):
        headers, body = Message(), said if isinstance(said, bytes) else json.dumps(said).encode()
        headers["Content-Type"] = "application/json"
        monkeypatch.setattr(client, "exchange", lambda *_asked: Answer(200, headers, body))
        code = main([*command, "--collector", URL])
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: "-".join(command[:2]))
def test_invalid_answer_is_reported_in_one_line(command, run):
    for body in WRONG:
        code, out, err = run(command, body)
        assert (code, out) == (5, "")
        assert "is no answer of a collector" in err
        assert "\x1b" not in err


def test_malformed_or_missing_tickets_are_rejected(run):
    """An empty list would make the command ask again and again."""
    word = "VdDBQb7pkMJ9AC4qonb8Bg"
    for given in ([], [word, CLEAR + word], [word, "#" + word], [word] * 3):
        said = {**STATUS, "tickets": given, "warnings": []}
        assert run(("invite", "habits", "--count", "2"), said)[:2] == (5, "")


def test_endless_deletion_is_aborted(run, monkeypatch):
    """The server answers each time that it deleted none or some reports, but not all."""
    monkeypatch.setattr("ldpkit.cli.studies.MOST_REQUESTS", 100)
    for deleted, said in ((0, "is no answer of a collector"), (1, "without end")):
        answer = {**STATUS, "deleted": deleted, "complete": False}
        code, out, err = run(("delete", "habits", "--yes"), answer)
        assert (code, out, said in err) == (5, "", True)


@pytest.mark.attack(16)
def test_publish_rejects_confirmation_of_another_study(run, tmp_path):
    """A server confirms the publication of another study: the command must not print it as published."""
    path = tmp_path / "study.json"
    path.write_bytes(STUDY.canonical())
    said = {"id": STUDY.id, "version": STUDY.version, "digest": STUDY.digest}
    for change in ({"digest": "0" * 64}, {"id": CLEAR}, {"version": 2}):
        assert run(("publish", str(path)), {**said, **change})[:2] == (5, "")
    code, out, _ = run(("publish", str(path)), said)
    assert (code, STUDY.digest in out) == (0, True)


def test_wrong_url_is_distinguished_from_unknown_study(server, capsys):
    """The URL given as --collector may be a node of secure sums or a page of the collector."""
    for kind, said in (("not-found", "is the URL the collector's"), ("study-unknown", "no x")):
        problem = {"type": f"urn:ldpkit:problem:{kind}", "detail": "no x"}
        server.statuses, server.refusals = [404], {404: ("application/problem+json", json.dumps(problem))}
        assert main(["status", "habits", "--collector", server.url]) == 3
        assert said in capsys.readouterr().err
