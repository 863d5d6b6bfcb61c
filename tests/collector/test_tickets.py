"""Studies that take invited reports only: each ticket admits one report, and nothing links the two."""

from __future__ import annotations

import csv
import hmac
import shutil
import sqlite3
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from sqlalchemy import inspect, select, text

from collector.daily import Upkeep
from collector.keys import hash_key
from collector.reports.writer import Upload
from collector.tickets.codes import TICKETS, delete_used_tickets, make_tickets
from ldpkit.cli import client
from ldpkit.cli.client import RefusalError
from tests.collector.answered import AwayError, problem
from tests.kit.collectors import TICKET_KEY as KEY
from tests.kit.collectors import Harness, build_report, build_study, count_tickets
from tests.kit.commands import run
from tests.kit.errors import raises
from tests.kit.operators import URL, answering, main_on
from tests.statistics import seed_the_system

REFUSED = (401, "ticket-needed")
INVALID = (401, "ticket-invalid")
SPENT_BEFORE = (409, "ticket-spent")
FRAME_HEADER, WAL_HEADER = 24, 32


@pytest.fixture
def either(make_harness, database_url, study):
    harness = make_harness(database=database_url, lock_timeout=10, ticket_key=KEY)
    harness.url = database_url
    harness.publish(study)
    return harness


@pytest.fixture
def keyed(make_harness, study):
    """The same on SQLite."""
    harness = make_harness(ticket_key=KEY)
    harness.publish(study)
    return harness


def made(harness, count):
    with harness.collector.database.write() as session:
        return make_tickets(session, "habits", count, KEY.encode())


def left(harness):
    with harness.collector.database.read() as session:
        return count_tickets(session, 1)


def test_ticket_admits_one_report_and_resending_uses_none(either, study):
    first, second = made(either, 2)
    report, other = build_report(study), build_report(study)
    assert problem(either.put(report)) == REFUSED
    assert problem(either.put(report, "no ticket of ours")) == INVALID
    assert either.put(report, first).status_code == 201
    assert problem(either.put(other, first)) == SPENT_BEFORE
    for ticket in (first, second, "unknown", None):
        assert either.put(report, ticket).status_code == 200
    assert left(either) == 1
    changed = build_report(study, id=report.id)
    if changed != report:
        assert either.put(changed, second).status_code == 409
    either.withdraw(report.id)
    assert problem(either.put(report, second)) == (410, "report-withdrawn")
    assert left(either) == 1


@pytest.mark.parametrize("commits", [False, True])
def test_failed_commit_uses_no_ticket(either, study, commits):
    """If only the acknowledgement was lost, the report is stored once."""
    (ticket,) = made(either, 1)
    writer, report = either.collector.writer, build_report(study)
    genuine = writer._store

    def store(uploads):
        writer._store = genuine
        if commits:
            genuine(uploads)
        raise AwayError

    writer._store = store
    assert either.put(report, ticket).status_code == 503
    assert left(either) == (0 if commits else 1)
    assert either.put(report, ticket).status_code == (200 if commits else 201)
    assert [exported.id for exported in either.exported()] == [report.id]


def test_one_commit_with_many_uploads_uses_each_ticket_once(either, study):
    """Two reports with one ticket, one report twice, and one without."""
    first, second = made(either, 2)
    rules = either.collector.rules.find("habits", 1)
    a, b, c, d = (rules.pack(build_report(study)) for _ in range(4))
    sent = [(a, first), (b, first), (c, second), (c, second), (d, None)]
    uploads = [Upload("habits", [one], hash_key(word) if word else None) for one, word in sent]
    (stored_a,), (refused_b,), (stored_c,), (again_c,), (refused_d,) = either.collector.writer._store(uploads)
    assert [one.value for one in (stored_a, stored_c, again_c)] == ["stored", "stored", "duplicate"]
    assert [one.kind.name for one in (refused_b, refused_d)] == ["ticket-spent", "ticket-needed"]


def test_racing_workers_use_each_report_and_ticket_once(postgresql, make_harness, study):
    url = postgresql.new_database()
    harnesses = [make_harness(database=url, lock_timeout=20, ticket_key=KEY) for _ in range(4)]
    harnesses[0].publish(study)
    for _ in range(3):
        (ticket,) = made(harnesses[0], 1)
        report = build_report(study)
        with ThreadPoolExecutor(4) as pool:
            statuses = [r.status_code for r in pool.map(Harness.put, harnesses, [report] * 4, [ticket] * 4)]
        assert sorted(statuses) == [200, 200, 200, 201]
        (ticket,) = made(harnesses[0], 1)
        reports = [build_report(study) for _ in harnesses]
        with ThreadPoolExecutor(4) as pool:
            statuses = [r.status_code for r in pool.map(Harness.put, harnesses, reports, [ticket] * 4)]
        assert sorted(statuses) == [201, 409, 409, 409]


def test_nothing_links_a_ticket_with_its_report(either, study):
    """No column holds both; a used one is told by its tag alone, until the day's are deleted together."""
    tickets = made(either, 13)
    for ticket in tickets[1:]:
        either.put(build_report(study), ticket)
    tables = inspect(either.collector.database.engine)
    columns = {
        name: {column["name"] for column in tables.get_columns(name)}
        for name in ("tickets", "spent", "reports")
    }
    assert columns == {
        "tickets": {"study", "hash", "public", "name", "request"},
        "spent": {"study", "mark"},
        "reports": {"study", "id", "version", "day", "payloads"},
    }
    # At a collector these columns say nothing.
    with either.collector.database.read() as session:
        of_issuers = select(TICKETS.c.name, TICKETS.c.request).distinct()
        assert session.execute(of_issuers).all() == [("", None)]
    assert (rows(either, "tickets"), rows(either, "spent"), left(either)) == (13, 12, 1)
    next_day(either)
    assert (rows(either, "tickets"), rows(either, "spent"), left(either)) == (1, 0, 1)
    with either.collector.database.engine.connect() as connection:
        hashes = {bytes(row.hash) for row in connection.execute(text("SELECT hash FROM tickets"))}
    assert hashes == {hash_key(tickets[0])}


@pytest.mark.attack(12)
def test_a_collector_gets_no_names(keyed, tmp_path, monkeypatch):
    """With names in its database, a collector could join people and their reports."""
    monkeypatch.chdir(tmp_path)
    names, bodies = ["Ada", "Bo"], []
    Path("people.csv").write_text("".join(f"{name}\n" for name in ("name", *names)))

    with answering(keyed.app), pytest.MonkeyPatch.context() as patch:
        plain = client.exchange
        patch.setattr(
            client, "exchange", lambda asked, *more: bodies.append(asked.data or b"") or plain(asked, *more)
        )
        run("invite", "habits", "--names", "people.csv", "--out", "out.csv", "--collector", URL)
    assert b"Ada" not in b"".join(bodies)
    with open("out.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["name"] for line in lines] == names
    assert {keyed.put(build_report(build_study()), line["ticket"]).status_code for line in lines} == {201}
    assert [line["link"] for line in lines] == [f"{URL}/s/habits#ticket={line['ticket']}" for line in lines]


def rows(harness, table):
    with harness.collector.database.engine.connect() as connection:
        return connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()


def next_day(harness):
    """The first report of a day, refused or not, has what was used on the day before deleted."""
    harness.day += timedelta(1)
    assert harness.post([build_report(build_study()).to_document()]).status_code == 200


@pytest.mark.attack(12)
def test_used_hashes_tags_and_nonces_are_overwritten(keyed, study):
    """Read in a database's files what links used tickets to reports."""
    tickets = made(keyed, 12)
    for ticket in tickets:
        keyed.put(build_report(study), ticket)
    with keyed.collector.database.read() as session:
        hidden = [bytes(session.execute(text("SELECT spending FROM studies")).scalar_one())[:16]]
        hidden += [bytes(row.mark) for row in session.execute(text("SELECT mark FROM spent"))]
    hidden += map(hash_key, tickets)

    def found():
        files = keyed.path.parent.glob(f"{keyed.path.name}*")
        content = b"".join(file.read_bytes() for file in files)
        assert tickets[0].encode() not in content
        return [each in content for each in hidden]

    assert found() == [True] * 25
    next_day(keyed)
    assert found() == [False] * 25


def test_invite_without_ticket_key_is_rejected(habits, study):
    """Servers with the key would reject every report, and no operator could invite again."""
    with raises(RefusalError, "server.refused", "ticket_key", "ldpkit.toml"):
        habits.operate("invite", "habits", "--count", "3")
    assert habits.put(build_report(study)).status_code == 201


def answered(harness, study, count):
    """Pairs of a report and its ticket, in the order in which they were sent."""
    words = made(harness, count)
    pairs = [(build_report(study), word) for word in words]
    for report, word in pairs:
        assert harness.put(report, word).status_code == 201
    return pairs


def upkeep(harness):
    harness.day += timedelta(1)
    Upkeep(harness.collector.database, lambda: harness.day, KEY.encode()).run(harness.day)


def commits(path, folder):
    """The database after each commit that its log still has: (tickets, tags, report ids, nonce)."""
    log = path.with_name(path.name + "-wal").read_bytes()
    (size,) = struct.unpack(">I", log[8:12])
    ends = []
    for start in range(WAL_HEADER, len(log), FRAME_HEADER + size):
        if struct.unpack(">I", log[start + 4 : start + 8])[0]:
            ends.append(start + FRAME_HEADER + size)
    for number, end in enumerate(ends):
        copy = folder / f"{number}.sqlite3"
        shutil.copy(path, copy)
        copy.with_name(copy.name + "-wal").write_bytes(log[:end])
        with closing(sqlite3.connect(copy)) as connection:
            yield tuple(
                {bytes(row[0]) for row in connection.execute(statement)}
                for statement in (
                    "SELECT hash FROM tickets",
                    "SELECT mark FROM spent",
                    "SELECT id FROM reports",
                    "SELECT substr(spending, 1, 16) FROM studies WHERE spending IS NOT NULL",
                )
            )


@pytest.mark.attack(12)
@pytest.mark.parametrize("settled", [False, True])
def test_sqlite_log_does_not_link_tickets_to_reports(settled, keyed, study, tmp_path):
    """A thief has the file, its log, and the operator's list of who got which ticket."""
    harness = keyed
    pairs = answered(harness, study, 20)
    if settled:
        with harness.collector.database.write() as session:
            assert delete_used_tickets(session, 1, KEY.encode()) == 20
    joined, by_hash = 0, {hash_key(word): report.id for report, word in pairs}
    seen = 0
    for before, after in pairwise(commits(harness.path, tmp_path)):
        vanished, new_tags, new_reports = before[0] - after[0], after[1] - before[1], after[2] - before[2]
        seen += len(new_reports)
        if len(new_reports) == 1:
            (report,) = new_reports
            guesses = set(vanished)
            for nonce in after[3]:
                key = hmac.digest(b"", nonce, "sha256")
                guesses |= {one for one in by_hash if hmac.digest(key, b"mark" + one, "sha256") in new_tags}
            joined += sum(by_hash.get(one) == report.hex() for one in guesses)
        assert len(vanished) in (0, 20)
    assert seen >= 19
    assert joined == 0


@pytest.mark.attack(12)
def test_postgresql_does_not_keep_arrival_order_of_earlier_days(make_harness, postgresql, study):
    """Someone reads the places of rows and the transactions that wrote them."""
    harness = make_harness(database=postgresql.new_database())
    harness.publish(study)
    reports = [build_report(study) for _ in range(60)]
    for report in reports:
        harness.put(report)
    upkeep(harness)
    with harness.collector.database.engine.connect() as connection:
        rows = connection.execute(text("SELECT id, xmin::text FROM reports ORDER BY ctid")).all()
    assert [bytes(row.id).hex() for row in rows] == sorted(report.id for report in reports)
    assert len({row.xmin for row in rows}) == 1
    assert harness.summary().get_json()["questions"]["ever"]["n"] == 60


@pytest.mark.attack(12)
def test_backup_is_not_in_order_of_arrival(either, study, tmp_path, monkeypatch):
    """Someone reads the places of reports in a backup."""
    seed_the_system(monkeypatch, "backup")
    ids = [report.id for report, _ in answered(either, study, 30)]
    copy = tmp_path / "copy"
    assert main_on(either.url, "backup", "--out", str(copy)) == 0
    places = [copy.read_bytes().index(bytes.fromhex(report_id)) for report_id in ids]
    pairs = [first < second for first, second in combinations(places, 2)]
    assert 0.2 < sum(pairs) / len(pairs) < 0.8


def test_tickets_are_used_once_also_after_upkeep(either, study):
    """Fewer than ten used ones are not deleted: a few would point to their reports."""
    pairs = answered(either, study, 9)
    upkeep(either)
    assert (rows(either, "tickets"), rows(either, "spent"), left(either)) == (9, 9, 0)
    pairs += answered(either, study, 3)
    (extra,) = made(either, 1)
    assert left(either) == 1
    upkeep(either)
    assert (rows(either, "tickets"), rows(either, "spent"), left(either)) == (1, 0, 1)
    for report, word in pairs:
        assert either.put(build_report(study), word).status_code == 401
        assert either.put(report, word).status_code == 200
    assert either.put(build_report(study), extra).status_code == 201


def test_another_ticket_key_admits_no_report_twice(make_harness, either, study):
    """A second machine without the settings file, or a file that was lost."""
    ((_, word), *_) = answered(either, study, 12)
    (fresh,) = made(either, 1)
    other = make_harness(database=either.url, ticket_key="another ticket key")
    for given in (word, fresh):
        answer = other.put(build_report(study), given)
        assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    Upkeep(other.collector.database, lambda: other.day + timedelta(3), b"another ticket key").run_if_due()
    assert left(either) == 1
    assert either.put(build_report(study), fresh).status_code == 201
