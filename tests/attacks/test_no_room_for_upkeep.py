"""Fill the disks that SQLite needs to rewrite a file: the server keeps running and logs the remedy."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing

import pytest

from collector.storage import upkeep
from collector.storage.database import Database
from collector.storage.rewriting import UnfinishedError, rewrite_files
from collector.storage.upkeep import RETRY_SECONDS
from tests.collector.conftest import ensure_database
from tests.collector.failing_disk import FailingDisk, SmallDisk
from tests.kit.errors import raises

SAID = "the daily upkeep failed"


MIB = 1 << 20


def grown(path, rows=2500):
    """More than SQLite keeps in memory of a file that it writes anew: rows of a page each."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE ballast (bytes BLOB)")
        # No waiting for a reader, whom emptying the log needs away.
        connection.execute("PRAGMA busy_timeout = 0")
        for _ in range(rows // 100):
            connection.executemany(
                "INSERT INTO ballast VALUES (?)", [(os.urandom(4000),) for _ in range(100)]
            )
            connection.commit()
            # The log needs no room of its own for all of them.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.slow
def test_server_on_full_disk_stores_reports_and_logs_remedy(start_server, tmp_path, study, make_report):
    disk = FailingDisk(tmp_path, loses_power=False)
    environment = {**disk.environment, "SQLITE_TMPDIR": str(disk.root)}
    database = tmp_path / "place" / "collector.sqlite3"
    database.parent.mkdir()
    # Not by a server, which does the day's upkeep of its new file as soon as it runs.
    ensure_database(f"sqlite:///{database}")
    grown(database)
    disk.fill()
    server = start_server(folder=tmp_path / "place", environment=environment)
    assert server.request("POST", "/v1/studies", study.document) == 201
    assert [server.put(make_report(study)) for _ in range(3)] == [201] * 3
    assert server.request("GET", "/readyz") == 200
    (line,) = server.logged(SAID)
    assert f"make room in {database.parent}" in line
    assert "SQLITE_TMPDIR" in line


def test_lasting_upkeep_failure_is_logged_once_a_day(habits, study, make_report, monkeypatch, caplog):
    """Each attempt doubles the pause; uploads are still accepted meanwhile."""
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


def test_locked_database_is_not_reported_as_full_disk(habits):
    with closing(sqlite3.connect(habits.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with raises(UnfinishedError, "database.order_in_files", "database is locked"):
            rewrite_files(habits.collector.database)


@pytest.fixture
def small_disk(tmp_path):
    try:
        mounted = SmallDisk(tmp_path)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nothing may be mounted here")
    yield mounted
    mounted.remove()


def test_rewrite_on_full_database_disk_keeps_data_and_frees_log(habits, tmp_path, small_disk, monkeypatch):
    """A failed rewrite used to leave half a new file in the log, which filled the disk."""
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    file = small_disk.root / "collector.sqlite3"
    habits.collector.database.engine.dispose()
    shutil.copyfile(habits.path, file)
    grown(file, 1400)
    before = shutil.disk_usage(small_disk.root).free
    # As a server beside it, whose connection keeps the log.
    with closing(sqlite3.connect(file)) as other:
        other.execute("SELECT count(*) FROM studies").fetchone()
        with raises(UnfinishedError, "database.order_in_files", "is full", str(small_disk.root)):
            rewrite_files(Database(f"sqlite:///{file}", 1.0))
        assert shutil.disk_usage(small_disk.root).free > before - MIB / 4
        other.execute("INSERT INTO ballast VALUES (1)")
        other.commit()
