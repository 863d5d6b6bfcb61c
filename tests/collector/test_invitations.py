"""Studies that take invited reports only: each invitation admits one report, and nothing links the two."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest
from sqlalchemy import inspect, text

from collector.operator.inviting import invite
from collector.remote.client import RefusalError
from collector.reports.writer import Upload
from collector.storage import keys
from collector.storage.keys import hash_key
from ldp_client.documents.errors import InputError
from tests.collector.answered import AwayError, Pair, problem
from tests.collector.conftest import build_report, build_study, count_invitations
from tests.kit.deleting import delete_study
from tests.kit.errors import raises

REFUSED = (403, "invitation-needed")


@pytest.fixture
def either(make_harness, database_url, study):
    harness = make_harness(database=database_url, lock_timeout=10)
    harness.url = database_url
    harness.publish(study)
    return harness


def made(harness, count):
    with harness.collector.database.write() as session:
        return invite(session, "habits", count, b"")


def left(harness):
    with harness.collector.database.read() as session:
        return count_invitations(session, 1)


def put(harness, report, invitation=None):
    headers = {} if invitation is None else {"LDPKit-Invitation": invitation}
    path = f"/v1/studies/habits/reports/{report.id}"
    return harness.app.test_client().put(path, json=report.to_document(), headers=headers)


def test_invitation_admits_one_report(either, study):
    first, second = made(either, 2)
    one, other = build_report(study), build_report(study)
    assert problem(put(either, one)) == REFUSED
    assert problem(put(either, one, "no invitation of ours")) == REFUSED
    assert put(either, one, first).status_code == 201
    assert problem(put(either, other, first)) == REFUSED
    assert put(either, other, second).status_code == 201
    assert left(either) == 0
    assert sorted(report.id for report in either.exported()) == sorted([one.id, other.id])


def test_resending_with_any_invitation_uses_no_invitation(either, study):
    first, second = made(either, 2)
    report = build_report(study)
    put(either, report, first)
    for invitation in (first, second, "unknown", None):
        assert put(either, report, invitation).status_code == 200
    assert left(either) == 1
    changed = build_report(study, id=report.id)
    if changed != report:
        assert put(either, changed, second).status_code == 409
    either.withdraw(report.id)
    assert problem(put(either, report, second)) == (410, "report-withdrawn")
    assert left(either) == 1


def test_batch_cannot_carry_invitations(either, study):
    (invitation,) = made(either, 1)
    held, new = build_report(study), build_report(study)
    put(either, held, invitation)
    result = either.post([held.to_document(), new.to_document()]).get_json()
    assert (result["stored"], result["duplicates"]) == (0, 1)
    assert [entry["type"] for entry in result["failed"]] == ["urn:ldpkit:problem:invitation-needed"]


@pytest.mark.parametrize("commits", [False, True])
def test_failed_commit_uses_no_invitation(either, study, commits):
    """If only the acknowledgement was lost, the report is stored once."""
    (invitation,) = made(either, 1)
    writer, report = either.collector.writer, build_report(study)
    genuine = writer._store

    def store(uploads):
        writer._store = genuine
        if commits:
            genuine(uploads)
        raise AwayError

    writer._store = store
    assert put(either, report, invitation).status_code == 503
    assert left(either) == (0 if commits else 1)
    assert put(either, report, invitation).status_code == (200 if commits else 201)
    assert [exported.id for exported in either.exported()] == [report.id]


def test_one_commit_with_many_uploads_uses_each_invitation_once(either, study):
    """Two reports with one invitation, one report twice, and one without."""
    first, second = made(either, 2)
    rules = either.collector.rules.find("habits", 1)
    a, b, c, d = (rules.pack(build_report(study)) for _ in range(4))
    sent = [(a, first), (b, first), (c, second), (c, second), (d, None)]
    uploads = [Upload("habits", [one], hash_key(word) if word else None) for one, word in sent]
    (stored_a,), (refused_b,), (stored_c,), (again_c,), (refused_d,) = either.collector.writer._store(uploads)
    assert [one.value for one in (stored_a, stored_c, again_c)] == ["stored", "stored", "duplicate"]
    assert [one.kind.name for one in (refused_b, refused_d)] == ["invitation-needed"] * 2


def test_racing_workers_use_each_report_and_invitation_once(postgresql, make_harness, study):
    url = postgresql.new_database()
    harnesses = [make_harness(database=url, lock_timeout=20) for _ in range(4)]
    harnesses[0].publish(study)
    for _ in range(10):
        (invitation,) = made(harnesses[0], 1)
        report = build_report(study)
        with ThreadPoolExecutor(4) as pool:
            statuses = [r.status_code for r in pool.map(put, harnesses, [report] * 4, [invitation] * 4)]
        assert sorted(statuses) == [200, 200, 200, 201]
        (invitation,) = made(harnesses[0], 1)
        reports = [build_report(study) for _ in harnesses]
        with ThreadPoolExecutor(4) as pool:
            statuses = [r.status_code for r in pool.map(put, harnesses, reports, [invitation] * 4)]
        assert sorted(statuses) == [201, 403, 403, 403]


def test_nothing_links_an_invitation_with_its_report(either, study):
    """No column holds both; a used one is told by its tag alone, until the day's are deleted together."""
    invitations = made(either, 13)
    for invitation in invitations[1:]:
        put(either, build_report(study), invitation)
    tables = inspect(either.collector.database.engine)
    columns = {
        name: {column["name"] for column in tables.get_columns(name)}
        for name in ("invitations", "spent_invitations", "reports")
    }
    assert columns == {
        "invitations": {"study", "hash", "public"},
        "spent_invitations": {"study", "tag"},
        "reports": {"study", "id", "version", "day", "payloads"},
    }
    assert (rows(either, "invitations"), rows(either, "spent_invitations"), left(either)) == (13, 12, 1)
    next_day(either)
    assert (rows(either, "invitations"), rows(either, "spent_invitations"), left(either)) == (1, 0, 1)
    with either.collector.database.engine.connect() as connection:
        hashes = {bytes(row.hash) for row in connection.execute(text("SELECT hash FROM invitations"))}
    assert hashes == {hash_key(invitations[0])}


def rows(harness, table):
    with harness.collector.database.engine.connect() as connection:
        return connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()


def next_day(harness):
    """The first report of a day, refused or not, has what was used on the day before deleted."""
    harness.day += timedelta(1)
    assert harness.post([build_report(build_study()).to_document()]).status_code == 200


def test_a_used_hash_is_overwritten(habits, study):
    invitations = made(habits, 12)
    with closing(sqlite3.connect(habits.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert hash_key(invitations[0]) in habits.path.read_bytes()
        for invitation in invitations:
            put(habits, build_report(study), invitation)
        next_day(habits)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert not any(hash_key(invitation) in habits.path.read_bytes() for invitation in invitations)
    assert invitations[0].encode() not in habits.path.read_bytes()


def test_fast_layer_reads_the_invitation_header(make_harness, study):
    pair = Pair(make_harness("fast.sqlite3"), make_harness("plain.sqlite3"))
    pair.publish(study)
    for harness in (pair.fast, pair.plain):
        with harness.collector.database.write() as session:
            invite(session, "habits", 1, b"")
            session.execute(text("UPDATE invitations SET hash = :hash"), {"hash": hash_key("word")})
    first, second = build_report(study), build_report(study)
    for report, word, status in ((first, "x", "403"), (first, "word", "201"), (second, "word", "403")):
        path = f"/v1/studies/habits/reports/{report.id}"
        answer = pair.send("PUT", path, report.to_json(), headers={"LDPKit-Invitation": word})
        assert answer[0].startswith(status)


def test_invite_without_invitation_key_is_rejected(habits, study):
    """Servers with the key would reject every report, and no operator could invite again."""
    with raises(RefusalError, "server.refused", "invitation_key", "ldpkit.toml"):
        habits.operate("invite", "habits", "--count", "3")
    assert put(habits, build_report(study)).status_code == 201


def test_new_key_never_starts_with_a_hyphen(monkeypatch):
    words = iter(["-a", "-b", "c-"])
    monkeypatch.setattr(keys.secrets, "token_urlsafe", lambda _size: next(words))
    assert keys.new_key() == "c-"


def test_invite_command_creates_and_lifts_invitations(make_harness, database_url, study, capsys):
    either = make_harness(database=database_url, lock_timeout=10, invitation_key="the one of its own")
    either.url = database_url
    either.publish(study)
    either.operate("invite", "habits", "--count", "3")
    invitations = [link.partition("=")[2] for link in capsys.readouterr().out.split()]
    assert len(set(invitations)) == 3
    assert put(either, build_report(study), invitations[2]).status_code == 201
    either.operate("invite", "habits", "--disable")
    assert left(either) == 0
    assert put(either, build_report(study)).status_code == 201
    for wrong in (["nosuch", "--count", "1"], ["habits", "--count", "0"], ["nosuch", "--disable"]):
        with pytest.raises((InputError, RefusalError)):
            either.operate("invite", *wrong)


def test_deleting_a_study_deletes_its_invitations(either):
    made(either, 3)
    delete_study(either.collector.database, "habits")
    assert left(either) == 0
