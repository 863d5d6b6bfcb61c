"""Fill the temporary folder that SQLite needs to write a file anew: the server goes on, and says it once."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

from collector.storage import upkeep
from collector.storage.rewriting import UnfinishedError, rewrite_files, temporary_folder
from collector.storage.upkeep import RETRY_SECONDS
from tests.collector.failing_disk import FailingDisk

SAID = "the daily upkeep failed"


def grown(path):
    """More than SQLite keeps in memory of a file that it writes anew."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE ballast (bytes BLOB)")
        connection.executemany("INSERT INTO ballast VALUES (?)", [(os.urandom(4000),) for _ in range(2500)])
        connection.commit()


def test_a_server_without_room_stores_reports_and_says_what_to_do(start_server, tmp_path, study, make_report):
    disk = FailingDisk(tmp_path, loses_power=False)
    environment = {**disk.environment, "SQLITE_TMPDIR": str(disk.root)}
    (tmp_path / "place").mkdir()
    first = start_server(folder=tmp_path / "place")
    first.kill()
    grown(first.database)
    disk.fill()
    server = start_server(folder=tmp_path / "place", environment=environment)
    assert server.request("POST", "/v1/studies", study.document) == 201
    assert [server.put(make_report(study)) for _ in range(3)] == [201] * 3
    assert server.request("GET", "/readyz") == 200
    (line,) = [one for one in server.log.read_text().splitlines() if SAID in one]
    assert str(disk.root) in line
    assert "SQLITE_TMPDIR" in line
    assert "MiB" in line


def test_a_failure_that_lasts_is_said_once_a_day(habits, study, make_report, monkeypatch, caplog):
    """Each try doubles the pause; uploads wait meanwhile, and are taken."""
    now, tried = [0.0], []

    def fail(_database):
        tried.append(now[0])
        raise UnfinishedError("no room")

    monkeypatch.setattr(upkeep, "rewrite_files", fail)
    daily = upkeep.Upkeep(habits.collector.database, lambda: habits.day, b"", lambda: now[0])
    for _ in range(200):
        daily.run_if_due()
        now[0] += RETRY_SECONDS
    assert 5 < len(tried) < 10
    assert caplog.text.count(SAID) == 1
    assert habits.put(make_report(study)).status_code == 201
    caplog.clear()
    habits.day = habits.day.replace(day=habits.day.day + 1)
    now[0] += 1e6
    daily.run_if_due()
    assert caplog.text.count(SAID) == 1


@pytest.mark.parametrize("named", ["SQLITE_TMPDIR", "TMPDIR"])
def test_the_folder_is_the_one_that_sqlite_takes(tmp_path, monkeypatch, named):
    for name in ("SQLITE_TMPDIR", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(named, str(tmp_path))
    assert temporary_folder() == tmp_path
    monkeypatch.setenv(named, str(tmp_path / "nowhere"))
    assert temporary_folder() != tmp_path


def test_what_has_nothing_to_do_with_room_is_said_as_it_is(habits):
    with closing(sqlite3.connect(habits.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnfinishedError, match="database is locked"):
            rewrite_files(habits.collector.database)
