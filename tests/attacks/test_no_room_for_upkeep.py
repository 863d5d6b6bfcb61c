"""Fill the disks that SQLite needs to write a file anew: the server goes on, and says which lacks room."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from collector.storage import room, upkeep
from collector.storage.database import Database
from collector.storage.rewriting import UnfinishedError, rewrite_files
from collector.storage.room import temporary_folder
from collector.storage.upkeep import RETRY_SECONDS
from tests.collector.conftest import ensure_database
from tests.collector.failing_disk import FailingDisk, SmallDisk

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
def test_a_server_without_room_stores_reports_and_says_what_to_do(start_server, tmp_path, study, make_report):
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


@pytest.fixture
def small_disk(tmp_path):
    try:
        mounted = SmallDisk(tmp_path)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nothing may be mounted here")
    yield mounted
    mounted.remove()


@pytest.mark.parametrize("rows", [1100, 1400], ids=["begun", "not-begun"])
def test_the_database_s_own_disk_lacks_room_and_keeps_what_it_has(
    habits, tmp_path, small_disk, monkeypatch, rows
):
    """Half a new file stayed in the log, the disk was full, and advice was about the temporary folder."""
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    file = small_disk.root / "collector.sqlite3"
    habits.collector.database.engine.dispose()
    shutil.copyfile(habits.path, file)
    grown(file, rows)
    before = room._free(small_disk.root)
    # As a server beside it, whose connection keeps the log.
    with closing(sqlite3.connect(file)) as other:
        other.execute("SELECT count(*) FROM studies").fetchone()
        with pytest.raises(UnfinishedError) as error:
            rewrite_files(Database(f"sqlite:///{file}", 1.0))
        assert f" MiB in {small_disk.root}, whose disk has " in str(error.value)
        assert "SQLITE_TMPDIR" not in str(error.value)
        assert room._free(small_disk.root) > before - MIB / 4
        other.execute("INSERT INTO ballast VALUES (1)")
        other.commit()


def disks(monkeypatch, path, tmp_path, beside, temporary, one=False):
    """A database's disk and that of a temporary folder with so much room."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("SQLITE_TMPDIR", str(folder))
    monkeypatch.setattr(room, "_is_one_disk", lambda *_folders: one)
    free = {folder: temporary, path.parent: beside}
    monkeypatch.setattr(room, "_free", lambda asked: free[asked])
    return folder


@pytest.mark.parametrize(
    ("beside", "temporary", "one", "said"),
    [
        (MIB, 99 * MIB, False, "up to 10 MiB in {place}, whose disk has 1 MiB: make room there"),
        (99 * MIB, MIB, False, "up to 10 MiB in the temporary folder {folder}, whose disk has 1 MiB: make"),
        (3 * MIB, 3 * MIB, True, "up to 10 MiB twice, in the temporary folder {folder} and in {place}, and"),
    ],
)
def test_what_cannot_fit_is_not_begun(habits, tmp_path, monkeypatch, beside, temporary, one, said):
    path = habits.path
    grown(path)
    folder = disks(monkeypatch, path, tmp_path, beside, temporary, one)
    before = path.read_bytes()
    with pytest.raises(UnfinishedError) as error:
        rewrite_files(habits.collector.database)
    assert said.format(place=path.parent, folder=folder) in str(error.value)
    assert path.read_bytes() == before


def test_a_file_with_half_empty_pages_is_begun_with_less_room(habits, tmp_path, monkeypatch):
    """After a day's reports, whose ids are random, the new file takes much less than the old."""
    grown(habits.path)
    disks(monkeypatch, habits.path, tmp_path, 6 * MIB, 6 * MIB)
    rewrite_files(habits.collector.database)


@pytest.mark.parametrize("beside", [MIB, 99 * MIB], ids=["full", "roomy"])
def test_the_disk_of_a_link_is_not_the_database_s(habits, tmp_path, monkeypatch, beside):
    """The link's disk was measured, and the log looked for beside the link."""
    grown(habits.path)
    link = tmp_path / "linked" / "other.sqlite3"
    link.parent.mkdir()
    link.symlink_to(habits.path)
    disks(monkeypatch, habits.path, tmp_path, beside, 99 * MIB)
    linked = Database(f"sqlite:///{link}", 1.0)
    if beside == MIB:
        with pytest.raises(UnfinishedError, match=f"in {habits.path.parent}, whose disk has 1 MiB"):
            rewrite_files(linked)
    else:
        rewrite_files(linked)


def test_the_log_of_a_link_lies_beside_what_it_leads_to(habits, tmp_path, monkeypatch):
    """Room that the log has already was not counted, and what would have fitted was refused."""
    link = tmp_path / "linked" / "other.sqlite3"
    link.parent.mkdir()
    link.symlink_to(habits.path)
    with closing(sqlite3.connect(link)) as connection:
        connection.execute("CREATE TABLE ballast (bytes BLOB)")
        connection.execute("INSERT INTO ballast VALUES (zeroblob(9 << 20))")
        connection.commit()
        assert Path(f"{habits.path}-wal").stat().st_size > 9 * MIB
        disks(monkeypatch, link, tmp_path, 0, 99 * MIB)
        assert room.Room(link, connection).doubt() == ""


def test_pages_that_wait_in_the_log_are_counted(habits, tmp_path, monkeypatch):
    """A small file beside a large log was said to need 0 MiB."""
    with closing(sqlite3.connect(habits.path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM studies").fetchone()
        grown(habits.path)
        assert habits.path.stat().st_size < MIB
        disks(monkeypatch, habits.path, tmp_path, -99 * MIB, 99 * MIB)
        with pytest.raises(UnfinishedError, match="up to 10 MiB in "):
            rewrite_files(habits.collector.database)
