"""Files link invitations to the reports they admitted, or reveal the order in which reports arrived."""

from __future__ import annotations

import hmac
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy import text

from collector.operator.inviting import invite
from collector.storage.invitations import delete_used_invitations
from collector.storage.keys import hash_key
from collector.storage.upkeep import Upkeep, telltale_settings
from ldpkit.cli import main
from tests.attacks.conftest import KEY
from tests.collector.conftest import REPOSITORY, build_report, count_invitations
from tests.statistics import seed_the_system

FRAME_HEADER, WAL_HEADER = 24, 32


@pytest.fixture
def invited(make_harness, database_url, study):
    """A collector that takes invited reports only; `.put(report, word)` sends one."""
    harness = make_harness(database=database_url, invitation_key=KEY, lock_timeout=10)
    harness.url = database_url
    harness.publish(study)
    harness.send = lambda report, word: harness.app.test_client().put(
        f"/v1/studies/habits/reports/{report.id}",
        json=report.to_document(),
        headers={"LDPKit-Invitation": word},
    )
    return harness


def with_key(make_harness, name, study):
    """Like `invited`, on an SQLite file by name."""
    harness = make_harness(name, invitation_key=KEY)
    harness.publish(study)
    harness.send = lambda report, word: harness.app.test_client().put(
        f"/v1/studies/habits/reports/{report.id}",
        json=report.to_document(),
        headers={"LDPKit-Invitation": word},
    )
    return harness


def made(harness, count):
    with harness.collector.database.write() as session:
        return invite(session, "habits", count, KEY.encode())


def answered(harness, study, count):
    """Pairs of a report and its invitation, in the order in which they were sent."""
    words = made(harness, count)
    pairs = [(build_report(study), word) for word in words]
    for report, word in pairs:
        assert harness.send(report, word).status_code == 201
    return pairs


def left(harness):
    with harness.collector.database.read() as session:
        return count_invitations(session, 1)


def upkeep(harness):
    harness.day += timedelta(1)
    Upkeep(harness.collector.database, lambda: harness.day, KEY.encode()).run(harness.day)


def commits(path, folder):
    """The database after each commit that its log still has: (invitations, tags, report ids, nonce)."""
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
                    "SELECT hash FROM invitations",
                    "SELECT tag FROM spent_invitations",
                    "SELECT id FROM reports",
                    "SELECT substr(spending, 1, 16) FROM studies WHERE spending IS NOT NULL",
                )
            )


@pytest.mark.parametrize("settled", [False, True])
def test_sqlite_log_does_not_link_invitations_to_reports(settled, make_harness, study, tmp_path):
    """The thief has the file, its log, and the operator's list of who got which invitation."""
    harness = with_key(make_harness, "collector.sqlite3", study)
    pairs = answered(harness, study, 40)
    if settled:
        with harness.collector.database.write() as session:
            assert delete_used_invitations(session, 1, KEY.encode()) == 40
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
                guesses |= {one for one in by_hash if hmac.digest(key, b"tag" + one, "sha256") in new_tags}
            joined += sum(by_hash.get(one) == report.hex() for one in guesses)
        assert len(vanished) in (0, 40)
    assert seen >= 39
    assert joined == 0


def cell_order(path, table):
    """Keys of a table in the order of their places on its first leaf page, the newest first."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    data = path.read_bytes()
    page = data[(root - 1) * size : root * size]
    # An interior page of an index: go down to its first child.
    while page[0] == 2:
        (first,) = struct.unpack(">H", page[12:14])
        (child,) = struct.unpack(">I", page[first : first + 4])
        page = data[(child - 1) * size : child * size]
    (count,) = struct.unpack(">H", page[3:5])
    return page, [struct.unpack(">H", page[8 + 2 * n : 10 + 2 * n])[0] for n in range(count)]


def concordant(path, ids):
    """The share of pairs of reports, of those on one page, whose places tell which came first."""
    page, places = cell_order(path, "reports")
    where = {}
    for place in places:
        for number, report_id in enumerate(ids):
            if bytes.fromhex(report_id) in page[place : place + 60]:
                where[number] = place
    found = sorted(where)
    pairs = [(a, b) for a in found for b in found if a < b]
    assert len(pairs) > 100
    return sum(where[a] > where[b] for a, b in pairs) / len(pairs)


def test_sqlite_file_does_not_keep_arrival_order_of_earlier_days(habits, study, monkeypatch):
    seed_the_system(monkeypatch, "places")
    reports = [build_report(study) for _ in range(50)]
    for report in reports:
        habits.put(report)
    ids = [report.id for report in reports]
    # Today's order is there: what the file of a running server shows, and docs/privacy.md says.
    assert concordant(habits.path, ids) > 0.95
    habits.day += timedelta(1)
    habits.put(build_report(study))
    assert 0.2 < concordant(habits.path, ids) < 0.8


def test_postgresql_does_not_keep_arrival_order_of_earlier_days(make_harness, postgresql, study):
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


def test_backup_is_not_in_order_of_arrival(invited, study, tmp_path, monkeypatch):
    seed_the_system(monkeypatch, "backup")
    ids = [report.id for report, _ in answered(invited, study, 30)]
    copy = tmp_path / "copy"
    assert main(["backup", "--out", str(copy), "--database", invited.url]) == 0
    if invited.url.startswith("sqlite"):
        assert 0.2 < concordant(copy, ids) < 0.8
        return
    found = [line for line in copy.read_text().splitlines() if re.match(r"1\t\\\\x[0-9a-f]{32}\t", line)]
    assert [line.split("\t")[1][3:] for line in found] == sorted(ids)


def test_invitations_are_used_once_also_after_upkeep(invited, study):
    pairs = answered(invited, study, 12)
    (extra,) = made(invited, 1)
    assert left(invited) == 1
    upkeep(invited)
    assert left(invited) == 1
    with invited.collector.database.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM spent_invitations")).scalar_one() == 0
        assert connection.execute(text("SELECT count(*) FROM invitations")).scalar_one() == 1
    for report, word in pairs:
        assert invited.send(build_report(study), word).status_code == 403
        assert invited.send(report, word).status_code == 200
    assert invited.send(build_report(study), extra).status_code == 201


def test_upkeep_waits_for_ten_used_invitations(invited, study):
    answered(invited, study, 9)
    upkeep(invited)
    with invited.collector.database.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM spent_invitations")).scalar_one() == 9
    answered(invited, study, 1)
    upkeep(invited)
    with invited.collector.database.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM spent_invitations")).scalar_one() == 0


def test_another_invitation_key_admits_no_report_twice(make_harness, invited, study):
    """A second machine without the settings file, or a file that was lost."""
    ((_, word), *_) = answered(invited, study, 12)
    (fresh,) = made(invited, 1)
    other = make_harness(database=invited.url, invitation_key="another invitation key")
    other.send = lambda report, word: other.app.test_client().put(
        f"/v1/studies/habits/reports/{report.id}",
        json=report.to_document(),
        headers={"LDPKit-Invitation": word},
    )
    for given in (word, fresh):
        answer = other.send(build_report(study), given)
        assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    Upkeep(other.collector.database, lambda: other.day + timedelta(3), b"another invitation key").run_if_due()
    assert left(invited) == 1
    assert invited.send(build_report(study), fresh).status_code == 201


def test_restored_backup_knows_used_invitations(make_harness, study, tmp_path):
    harness = with_key(make_harness, "before.sqlite3", study)
    pairs = answered(harness, study, 3)
    copy = tmp_path / "copy.sqlite3"
    assert main(["backup", "--out", str(copy), "--database", f"sqlite:///{harness.path}"]) == 0
    restored = with_key(make_harness, copy.name, study)
    for report, word in pairs:
        assert restored.send(report, word).status_code == 200
        assert restored.send(build_report(study), word).status_code == 403


# One child for each report, each killed at a later statement; the imports are made once.
SPEND = """
import os, signal, sys
from tests.attacks.conftest import KEY
from tests.collector.conftest import Harness
from schemas import Report
from sqlalchemy import event

def spend(url, number, word, text):
    harness = Harness(url, invitation_key=KEY)
    seen = []
    @event.listens_for(harness.collector.database.engine, "before_cursor_execute")
    def count(*_arguments):
        seen.append(1)
        if len(seen) == number:
            os.kill(os.getpid(), signal.SIGKILL)
    report = Report.from_json(text)
    path = f"/v1/studies/habits/reports/{report.id}"
    headers = {"LDPKit-Invitation": word, "Content-Type": "application/json"}
    return harness.client.put(path, data=text, headers=headers).status_code

for number, line in enumerate(sys.stdin, 1):
    child = os.fork()
    if not child:
        os._exit(spend(sys.argv[1], number, *line.rstrip().split(" ", 1)) != 201)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.slow
def test_kill_at_any_statement_leaves_one_report_per_invitation(make_harness, study):
    harness = with_key(make_harness, "collector.sqlite3", study)
    spender = subprocess.Popen(
        [sys.executable, "-c", SPEND, f"sqlite:///{harness.path}"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    number, status = 0, -signal.SIGKILL
    with spender:
        while status == -signal.SIGKILL:
            number += 1
            (word,) = made(harness, 1)
            first, second = build_report(study), build_report(study)
            spender.stdin.write(f"{word} {first.to_json()}\n")
            spender.stdin.flush()
            status = int(spender.stdout.readline())
            assert status in (0, -signal.SIGKILL)
            # The device sends again, and another device tries the same invitation.
            assert harness.send(first, word).status_code in (200, 201)
            assert harness.send(second, word).status_code == 403
    assert 5 < number < 40


def test_postgresql_settings_that_log_ids_are_reported(postgresql, make_harness):
    harness = make_harness(database=postgresql.new_database())
    database = harness.collector.database
    assert telltale_settings(database) == []
    name = database.url.database
    with database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.exec_driver_sql(f'ALTER DATABASE "{name}" SET log_statement = "all"')
    database.engine.dispose()
    assert telltale_settings(database) == ["log_statement = all"]
