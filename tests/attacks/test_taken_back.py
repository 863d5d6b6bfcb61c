"""Pipe invitations to a program that fails once people used some: those are taken back, their uses stay.

Defence: The command: takes back those that nobody used, and says how many were.
"""

from __future__ import annotations

import sys

import pytest
from sqlalchemy import text

from collector.operator.inviting import invite
from collector.storage.upkeep import Upkeep
from tests.collector.answered import problem
from tests.collector.commands import run
from tests.collector.conftest import INVITATION_KEY, build_report

FIRST, READ = 12, 10


def put(harness, study, word):
    report = build_report(study)
    path = f"/v1/studies/habits/reports/{report.id}"
    headers = {"LDPKit-Invitation": word}
    return harness.app.test_client().put(path, json=report.to_document(), headers=headers)


@pytest.fixture
def invited(make_harness, database_url, study, monkeypatch):
    """A collector whose operator pipes invitations to a loop that mails some and then fails."""
    monkeypatch.setenv("LDPKIT_INVITATION_KEY", INVITATION_KEY)
    harness = make_harness(database=database_url, busy_timeout=10, invitation_key=INVITATION_KEY)
    harness.publish(study)
    harness.words = []

    def mail(said):
        if len(harness.words) == READ:
            raise BrokenPipeError
        if said.strip():
            harness.words.append(said)
            assert put(harness, study, said).status_code == 201

    def pipe():
        with monkeypatch.context() as broken:
            broken.setattr(sys.stdout, "write", mail)
            with pytest.raises(BrokenPipeError):
                run("admin", "invite", "habits", "--count", "40", "--database", database_url)

    harness.pipe = pipe
    return harness


def test_uses_keep_their_invitations(invited, study, capsys):
    """Else the upkeep would find uses of nothing, and take the invitation key for a wrong one for good."""
    secret = invited.collector.settings.invitation_secret
    with invited.collector.database.write() as session:
        first = invite(session, "habits", FIRST, secret)
    assert {put(invited, study, word).status_code for word in first[:-1]} == {201}
    invited.pipe()
    assert f"{READ} of them were used already, and none of the others is good" in capsys.readouterr().err
    assert problem(put(invited, study, invited.words[0])) == (403, "invitation-needed")
    Upkeep(invited.collector.database, lambda: invited.day, secret).run(invited.day, even_if_done=True)
    with invited.collector.database.read() as session:
        assert session.execute(text("SELECT count(*) FROM spent_invitations")).scalar() == 0
    assert put(invited, study, first[-1]).status_code == 201


def test_a_study_that_was_open_to_all_is_so_again(invited, study):
    """And says so: not that fewer invitations than none are left."""
    invited.pipe()
    status = invited.client.get("/v1/studies/habits/status", headers=invited.operator).get_json()
    assert status["invitations_left"] is None
    assert invited.put(build_report(study)).status_code == 201
