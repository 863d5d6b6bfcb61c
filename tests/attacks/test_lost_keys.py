"""One study's invitation key is lost, and the order of all other studies' reports is no longer removed.

Defence: The collector: does the upkeep of all other studies, names that study each day in its log, and
`ldpkit upkeep` fails until its invitations are forgotten.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text

from collector.operator.inviting import invite
from collector.storage.invitations import SPENT
from tests.attacks.conftest import KEY
from tests.collector.conftest import build_report, build_study, count_invitations

LOST, OTHER, KEPT = (build_study(id=name) for name in ("lost", "other", "kept"))
USES = 12


def made(harness, study, count, key):
    with harness.collector.database.write() as session:
        return invite(session, study.id, count, key.encode())


def use(harness, study, words):
    for word in words:
        report = build_report(study)
        path = f"/v1/studies/{study.id}/reports/{report.id}"
        headers = {"LDPKit-Invitation": word}
        assert (
            harness.app.test_client().put(path, json=report.to_document(), headers=headers).status_code == 201
        )


def tags(harness):
    with harness.collector.database.read() as session:
        return len(session.execute(SPENT.select()).all())


@pytest.fixture
def moved(make_harness, database_url):
    """A place whose settings were lost after a study had used its invitations."""
    before = make_harness(database=database_url, invitation_key="a key that is lost", lock_timeout=10)
    before.publish(LOST)
    use(before, LOST, made(before, LOST, USES, "a key that is lost"))
    before.close(LOST.id)
    before.collector.close()
    harness = make_harness(database=database_url, invitation_key=KEY, lock_timeout=10)
    harness.url = database_url
    for study in (OTHER, KEPT):
        harness.publish(study)
    use(harness, KEPT, made(harness, KEPT, USES, KEY))
    return harness


def order_of(harness):
    """The ids of the open study's reports in the order of PostgreSQL's table."""
    rows = (
        "SELECT r.id FROM reports r JOIN studies s ON s.number = r.study WHERE s.id = 'other' ORDER BY r.ctid"
    )
    with harness.collector.database.read() as session:
        return [bytes(row.id).hex() for row in session.execute(text(rows))]


def test_upkeep_of_other_studies_runs_despite_a_lost_key(moved, caplog):
    sent = sorted((build_report(OTHER) for _ in range(USES)), key=lambda report: report.id, reverse=True)
    assert {moved.put(report).status_code for report in sent} == {201}
    moved.day += timedelta(1)
    assert moved.put(build_report(OTHER)).status_code == 201
    assert "the daily upkeep: used invitations could not be deleted" in caplog.text
    assert "study lost: setting invitation_key" in caplog.text
    assert "study kept" not in caplog.text
    assert tags(moved) == USES
    if "postgresql" in moved.url:
        old = {report.id for report in sent}
        assert [found for found in order_of(moved) if found in old] == sorted(old)


def test_upkeep_fails_until_invitations_of_lost_key_are_forgotten(moved, capsys):
    assert moved.exit_code("upkeep") != 0
    said = capsys.readouterr().err
    assert "study lost: setting invitation_key" in said
    assert "all other upkeep was done" in said
    assert tags(moved) == USES
    assert moved.exit_code("invite", "lost", "--revoke-all") == 0
    assert moved.exit_code("upkeep") == 0
    with moved.collector.database.read() as session:
        assert count_invitations(session, 1) == 0
