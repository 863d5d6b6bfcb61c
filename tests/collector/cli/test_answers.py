"""A server that is not a collector answers a command with other data, or with escape sequences."""

from __future__ import annotations

import json
from email.message import Message

import pytest

from ldp_client.device.http import Answer
from ldpkit.cli import client, main
from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server

KEY = "operators-token-0123456789"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("LDPKIT_TOKEN", KEY)


COMMANDS = (
    ("status",),
    ("status", "habits"),
    ("invite", "habits", "--count", "2"),
    ("keys", "ann", "--role", "read"),
    ("keys",),
    ("status", "--log"),
    ("delete", "habits", "--yes"),
)
CLEAR = "\x1b[2J\x1b[1;1H\u202e\r\n"
DEEP = b"[" * 50_000
STATUS = {
    "id": "habits",
    "version": 1,
    "title": "Habits",
    "state": "open",
    "opens": None,
    "closes": None,
    "days_left": None,
    "reports": 0,
    "summed": False,
    "by_day": [],
    "versions": [],
    "tickets_left": None,
    "posterior": None,
    "refused": {},
    "attention": [],
}
WRONG = (
    DEEP,
    [1],
    {"studies": [[]], "keys": ["ann"], "entries": [7], "attention": [], "key": CLEAR, "version": CLEAR},
    {**STATUS, "studies": [STATUS, {"id": "other"}], "reports": 10**400, "key": ["a"], "version": "1"},
    {
        **STATUS,
        "by_day": [{"day": 3}],
        "keys": [{"name": CLEAR}],
        "entries": [{"at": None}],
        "tickets": [],
    },
)
URL = "http://127.0.0.1:1"


@pytest.fixture
def says(monkeypatch):
    """Answers every request with the given body."""

    def answer(said):
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        headers = Message()
        headers["Content-Type"] = "application/json"
        monkeypatch.setattr(client, "exchange", lambda *_asked: Answer(200, headers, body))

    return answer


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: "-".join(command[:2]))
def test_invalid_answer_is_reported_in_one_line(command, says, capsys):
    for body in WRONG:
        says(body)
        assert main([*command, "--collector", URL]) == 5
        told = capsys.readouterr()
        assert told.out == ""
        assert "is no answer of a collector" in told.err
        assert "\x1b" not in told.err


def test_malformed_or_missing_tickets_are_rejected(says, capsys):
    """An empty list would make the command ask again and again."""
    word = "VdDBQb7pkMJ9AC4qonb8Bg"
    for given in ([], [word], [word, CLEAR + word], [word, "#" + word], [word] * 3):
        says({**STATUS, "tickets": given, "warnings": []})
        assert main(["invite", "habits", "--count", "2", "--collector", URL]) == 5
        assert capsys.readouterr().out == ""


def test_endless_deletion_is_aborted(says, monkeypatch, capsys):
    """The server answers each time that it deleted none or some reports, but not all."""
    monkeypatch.setattr("ldpkit.cli.studies.MOST_REQUESTS", 100)
    for deleted, said in ((0, "is no answer of a collector"), (1, "without end")):
        says({**STATUS, "deleted": deleted, "complete": False})
        assert main(["delete", "habits", "--yes", "--collector", URL]) == 5
        told = capsys.readouterr()
        assert (told.out, said in told.err) == ("", True)


@pytest.mark.attack(16)
def test_publish_rejects_confirmation_of_another_study(says, tmp_path, capsys):
    """A server confirms the publication of another study: the command must not print it as published."""
    study = Study(studies.document(studies.YES_NO))
    path = tmp_path / "study.json"
    path.write_bytes(study.canonical())
    said = {"id": study.id, "version": study.version, "digest": study.digest}
    for change in ({"digest": "0" * 64}, {"id": CLEAR}, {"version": 2}):
        says({**said, **change})
        assert main(["publish", str(path), "--collector", URL]) == 5
        assert capsys.readouterr().out == ""
    says(said)
    assert main(["publish", str(path), "--collector", URL]) == 0
    assert study.digest in capsys.readouterr().out


def test_wrong_url_is_distinguished_from_unknown_study(capsys):
    """The URL given as --collector may be a node of secure sums or a page of the collector."""
    with Server() as server:
        for kind, said in (("not-found", "is the URL the collector's"), ("study-unknown", "no x")):
            problem = {"type": f"urn:ldpkit:problem:{kind}", "detail": "no x"}
            server.statuses, server.refusals = [404], {404: ("application/problem+json", json.dumps(problem))}
            assert main(["status", "habits", "--collector", server.url]) == 3
            assert said in capsys.readouterr().err
