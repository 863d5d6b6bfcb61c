"""Put a backup in the place of a running server's database, or move it away: what it acknowledges is lost.

Attack: Putting a backup in the place of a running server's database, or moving it away, so that what is
acknowledged is lost: collector and issuer: 503 until it is started again on the file that is there.

Attack: Putting a backup there without `ldpkit restore`, before the server is stopped or after it was killed,
so that the old file's log is written into it: collector and issuer: nothing starts beside another file's log.
A mark drawn for each log stands in its file and in FILE-mark, with the file's number, so also for a backup
that was used and for a file that was served before. Also where it is written over the file with `cp`. A
server that meets a damaged file acknowledges nothing more. Known limit: a copy made with another program
while the log was in use, written over the file with `cp`.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from unittest.mock import patch
from urllib.error import HTTPError

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from collector.operator.actions import count_again
from collector.storage import queries, wal
from collector.storage.backup import back_up
from collector.storage.database import Bounds, Database
from collector.storage.keys import TOKEN_KEY
from collector.storage.migrating import check, make, migrate
from ldp_client.documents.errors import InputError
from tests.collector.answered import problem
from tests.collector.conftest import START_SECONDS, TOKEN, build_report, build_study
from tests.kit.errors import raises


def beside(path):
    """As another process has the database."""
    return Database(f"sqlite:///{path}", 10)


def restored(path):
    copy = path.with_name("backup.sqlite3")
    os.replace(copy, path)


def moved(path):
    shutil.move(path, path.with_name("elsewhere.sqlite3"))


def overwritten(path):
    shutil.copyfile(path.with_name("backup.sqlite3"), path)


@pytest.mark.parametrize("change", [restored, moved, overwritten])
def test_server_with_replaced_database_acknowledges_nothing(habits, study, caplog, change):
    assert habits.put(build_report(study)).status_code == 201
    back_up(beside(habits.path), habits.path.with_name("backup.sqlite3"))
    change(habits.path)
    for _ in range(12):
        assert problem(habits.put(build_report(study))) == (503, "unavailable")
    assert habits.publish(build_study(2)).status_code == 503
    assert habits.client.get("/readyz").status_code == 503
    assert habits.client.get("/healthz").status_code == 200
    assert "the database cannot be used" in caplog.text


def test_restarted_server_uses_restored_backup(habits, make_harness, study):
    first = build_report(study)
    habits.put(first)
    back_up(beside(habits.path), habits.path.with_name("backup.sqlite3"))
    habits.put(build_report(study))
    habits.collector.close()
    restored(habits.path)
    for name in ("-wal", "-shm"):
        habits.path.with_name(habits.path.name + name).unlink(missing_ok=True)
    again = make_harness()
    assert again.exported() == [first]
    assert again.put(build_report(study)).status_code == 201


def ids_in(path):
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {row[0].hex() for row in connection.execute("SELECT id FROM reports")}


def log_of(path):
    return path.with_name(path.name + "-wal")


@pytest.mark.slow
def test_stopping_server_does_not_change_restored_file(start_server, tmp_path, study):
    server = start_server("--workers", "2")
    (path,) = tmp_path.glob("*.sqlite3")
    server.request("POST", "/v1/studies", study.document)
    before, after = build_report(study), build_report(study)
    assert server.put(before) == 201
    database = Database(f"sqlite:///{path}", 10)
    back_up(database, path.with_name("backup.sqlite3"))
    assert server.put(after) == 201
    kept = path.with_name("kept.sqlite3")
    os.link(path, kept)
    restored(path)
    bytes_restored = path.read_bytes()
    with pytest.raises(HTTPError, match="503"):
        server.put(build_report(study))
    with raises(InputError, "database.foreign_log"):
        check(database)
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(timeout=START_SECONDS)
    assert path.read_bytes() == bytes_restored
    assert ids_in(path) == {before.id}
    (aside,) = tmp_path.glob("*-wal.replaced-1")
    assert str(aside) in server.log.read_text()
    check(Database(f"sqlite:///{path}", 10))
    # Nothing that was acknowledged is lost to whoever wants it back.
    aside.rename(log_of(kept))
    assert ids_in(kept) == {before.id, after.id}


@pytest.mark.slow
def test_stopping_server_does_not_change_overwritten_file(start_server, tmp_path, study):
    """With `cp`, which keeps the file and changes what is in it."""
    server = start_server("--workers", "2")
    (path,) = tmp_path.glob("*.sqlite3")
    server.request("POST", "/v1/studies", study.document)
    before, after = build_report(study), build_report(study)
    assert server.put(before) == 201
    back_up(Database(f"sqlite:///{path}", 10), path.with_name("backup.sqlite3"))
    assert server.put(after) == 201
    overwritten(path)
    bytes_restored = path.read_bytes()
    with pytest.raises(HTTPError, match="503"):
        server.put(build_report(study))
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(timeout=START_SECONDS)
    assert path.read_bytes() == bytes_restored
    assert ids_in(path) == {before.id}
    (aside,) = tmp_path.glob("*-wal.replaced-1")
    assert aside.stat().st_mode & 0o077 == 0
    check(Database(f"sqlite:///{path}", 10))


def test_log_of_other_file_is_named_and_not_moved(tmp_path, caplog):
    """The advice used to name a log next to the link, where there is none."""
    real, link = tmp_path / "disk" / "real.sqlite3", tmp_path / "reports.sqlite3"
    real.parent.mkdir()
    make(beside(real))
    link.symlink_to(real)
    log_of(real).write_bytes(b"another's")
    mark = real.with_name("real.sqlite3-mark")
    mark.write_text("00000001 1 1")
    with raises(InputError, "database.foreign_log", "`ldpkit restore`", mark.name), wal.served_alone(link):
        check(beside(link))
    assert log_of(real).read_bytes() == b"another's"
    assert not caplog.text


@pytest.mark.slow
def test_log_of_killed_server_is_not_applied_to_restored_file(start_server, tmp_path, study):
    server = start_server()
    (path,) = tmp_path.glob("*.sqlite3")
    server.request("POST", "/v1/studies", study.document)
    database = Database(f"sqlite:///{path}", 10)
    back_up(database, path.with_name("backup.sqlite3"))
    assert server.put(build_report(study)) == 201
    server.kill()
    restored(path)
    before, log = path.read_bytes(), log_of(path).read_bytes()
    for use in (check, make, migrate):
        with raises(InputError, "database.foreign_log"):
            use(database)
    assert (path.read_bytes(), log_of(path).read_bytes()) == (before, log)
    log_of(path).rename(path.with_name("aside"))
    check(Database(f"sqlite:///{path}", 10))


@pytest.mark.slow
def test_log_of_killed_server_is_applied_to_its_own_file(start_server, tmp_path, study):
    server = start_server()
    server.request("POST", "/v1/studies", study.document)
    report = build_report(study)
    assert server.put(report) == 201
    server.kill()
    (path,) = tmp_path.glob("*.sqlite3")
    assert log_of(path).stat().st_size
    check(Database(f"sqlite:///{path}", 10))
    assert ids_in(path) == {report.id}


def test_vacuum_keeps_database_file(habits, study):
    """VACUUM rewrites the same file."""
    before = habits.path.stat().st_ino
    habits.put(build_report(study))
    database = Database(f"sqlite:///{habits.path}", 10)
    with database.engine.connect() as connection:
        connection.connection.driver_connection.execute("VACUUM")
    database.engine.dispose()
    assert habits.path.stat().st_ino == before
    assert habits.put(build_report(study)).status_code == 201


def test_log_held_by_reader_is_reported(tmp_path, monkeypatch, caplog):
    """Without the message, a copy of the one file would lack acknowledged reports."""
    monkeypatch.setattr(wal, "BUSY_SECONDS", 0.05)
    path = tmp_path / "reports.sqlite3"
    with closing(sqlite3.connect(path)) as writer, closing(sqlite3.connect(path)) as reader:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("CREATE TABLE reports (id)")
        writer.execute("PRAGMA user_version = 1")
        writer.commit()
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM reports").fetchall()
        writer.execute("INSERT INTO reports VALUES (1)")
        writer.commit()
        with wal.served_alone(path):
            pass
        said = "keeps its latest data in its log, because another program still reads it"
        assert f"reports.sqlite3 {said}" in caplog.text
        caplog.clear()
        reader.rollback()
        with wal.served_alone(path):
            pass
        assert not caplog.text
        assert log_of(path).stat().st_size == 0


def look(path):
    """As its operator does before it is put in place: with a copy of it."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        assert connection.execute("SELECT count(*) FROM studies").fetchone()


def killed(harness, folder):
    """What a killed server leaves: its file, the log and FILE-mark beside it, in another folder."""
    folder.mkdir()
    for file in harness.path.parent.glob(harness.path.name + "*"):
        shutil.copyfile(file, folder / file.name)
    return folder / harness.path.name


@pytest.mark.parametrize("put", [os.replace, shutil.copyfile])
def test_inspected_backup_is_not_taken_for_file_of_log(habits, study, tmp_path, put):
    """Reading commands used to put the backup into WAL mode, so that it looked like a file with a log."""
    before = build_report(study)
    habits.put(before)
    copy = tmp_path / "backup.sqlite3"
    back_up(beside(habits.path), copy)
    habits.put(build_report(study))
    path, untouched = killed(habits, tmp_path / "dead"), copy.read_bytes()
    look(copy)
    assert copy.read_bytes() == untouched
    # Nor is it where it has had a log of its own since.
    with beside(copy).write() as session:
        session.execute(text("UPDATE studies SET closed = closed"))
    put(copy, path)
    with raises(InputError, "database.foreign_log"):
        check(beside(path))
    log_of(path).rename(path.with_name("aside"))
    check(beside(path))
    assert ids_in(path) == {before.id}


def test_earlier_served_file_is_not_taken_for_file_of_log(habits, make_harness, study, tmp_path):
    """The file has had a log itself, so that its header proves nothing."""
    habits.collector.close()
    habits.collector.database.engine.dispose()
    stopped = tmp_path / "stopped.sqlite3"
    shutil.copyfile(habits.path, stopped)
    again = make_harness()
    assert again.put(build_report(study)).status_code == 201
    path = killed(again, tmp_path / "dead")
    os.replace(stopped, path)
    with raises(InputError, "database.foreign_log"):
        check(beside(path))


@pytest.mark.slow
def test_copy_of_running_database_is_not_taken_for_file_of_log(start_server, tmp_path, study):
    """A copy by `sqlite3 FILE .backup COPY` has the mark of the log, but is another file."""
    server = start_server()
    (path,) = tmp_path.glob("*.sqlite3")
    server.request("POST", "/v1/studies", study.document)
    copy = path.with_name("backup.sqlite3")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    assert server.put(build_report(study)) == 201
    server.kill()
    restored(path)
    with raises(InputError, "database.foreign_log"):
        check(beside(path))


def test_place_copied_with_its_log_works(habits, study, tmp_path):
    report = build_report(study)
    habits.put(report)
    path = killed(habits, tmp_path / "copy")
    check(beside(path))
    assert ids_in(path) == {report.id}


def test_place_restored_by_rsync_works_after_deleting_mark(habits, study):
    """rsync writes new files for what changed and leaves FILE-mark; the log has the acknowledged reports."""
    report = build_report(study)
    habits.put(report)
    path = habits.path
    for file in (path, log_of(path)):
        shutil.copyfile(file, file.with_name("new"))
        os.replace(file.with_name("new"), file)
    with raises(InputError, "database.foreign_log", f"{path.name}-mark"):
        check(beside(path))
    path.with_name(f"{path.name}-mark").unlink()
    check(beside(path))
    assert ids_in(path) == {report.id}


def test_moved_file_gets_its_log_when_moved_back(habits, study, caplog):
    """The file was moved away under a running server, which then stopped, and moved back."""
    report = build_report(study)
    habits.put(report)
    away = habits.path.with_name("away")
    with wal.served_alone(habits.path):
        habits.path.rename(away)
    assert "is gone; its log stays where it is" in caplog.text
    away.rename(habits.path)
    check(beside(habits.path))
    assert ids_in(habits.path) == {report.id}


@pytest.mark.slow
def test_second_server_on_same_database_does_not_start(start_server, study):
    server = start_server()
    place = ["--database", f"sqlite:///{server.database}", "--port", "0", "--token", TOKEN]
    done = subprocess.run(
        [sys.executable, "-m", "ldpkit.cli", "serve", *place], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "a server works on database" in done.stderr) == (3, True)
    server.request("POST", "/v1/studies", study.document)
    # As systemd does, at once.
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    again = start_server()
    assert again.put(build_report(study)) == 201


def test_second_server_is_refused_under_any_name_of_file(tmp_path):
    file, link = tmp_path / "real.sqlite3", tmp_path / "link" / "reports.sqlite3"
    link.parent.mkdir()
    link.symlink_to(file)
    file.touch()
    refused = raises(InputError, "database.served_already")
    with wal.served_alone(file), refused, wal.served_alone(link):
        pass
    with wal.served_alone(link):
        pass
    assert not list(link.parent.glob("*-mark"))


def test_served_file_copied_over_running_database_is_detected(habits, study):
    """`cp` keeps the file, and a served backup has the same kind of header."""
    habits.put(build_report(study))
    copy = habits.path.with_name("backup.sqlite3")
    back_up(beside(habits.path), copy)
    other = Database(f"sqlite:///{copy}", 10)
    with other.write() as session:
        session.execute(text("UPDATE studies SET closed = closed"))
    other.engine.dispose()
    overwritten(habits.path)
    assert problem(habits.put(build_report(study))) == (503, "unavailable")
    assert habits.client.get("/readyz").status_code == 503


def test_concurrent_start_keeps_one_log(tmp_path):
    """A worker that had connected but not read yet used to find another mark, and emptied a log in use."""
    path = tmp_path / "collector.sqlite3"
    made = beside(path)
    make(made)
    made.engine.dispose()
    first, second = (Database(f"sqlite:///{path}", 10, Bounds(2, 10)) for _ in range(2))
    # As a worker does that is stopped between both.
    waiting = first.engine.raw_connection()
    with second.write() as session:
        session.execute(text("INSERT INTO upkeep (day) VALUES ('2026-01-01')"))
    waiting.close()
    with first.read() as session:
        assert session.execute(text("SELECT count(*) FROM upkeep")).scalar() == 1
    first.engine.dispose()
    second.engine.dispose()
    assert not [*tmp_path.glob("*.replaced-*")]


def test_damaged_file_rejects_further_reports(habits, study, caplog):
    """Reports that are acknowledged into a damaged file are lost with it."""
    habits.put(build_report(study))
    with closing(sqlite3.connect(habits.path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'reports'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with habits.path.open("r+b") as file:
            file.seek((page - 1) * size)
            file.write(b"\7" * size)
            file.flush()
        # Another change, so that nobody has the page in memory.
        connection.execute("UPDATE studies SET closed = closed")
        connection.commit()
    for _ in range(3):
        assert problem(habits.put(build_report(study))) == (503, "unavailable")
        assert habits.client.get("/readyz").status_code == 503
    assert habits.publish(build_study(id="others")).status_code == 503
    assert caplog.text.count("is damaged (database disk image is malformed)") == 1


@pytest.mark.parametrize("way", ["page", "recount"])
def test_damaged_report_page_raises_error_when_read(habits, study, way):
    """Rows are read past SQLAlchemy, so that servers used to go on; a recount has its own connection."""
    reports = [build_report(study).to_document() for _ in range(400)]
    assert habits.post(reports).status_code == 200
    habits.collector.close()
    habits.collector.database.engine.dispose()
    with closing(sqlite3.connect(habits.path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with habits.path.open("r+b") as file:
        file.seek(-size, os.SEEK_END)
        file.write(b"\7" * size)
    if way == "page":
        with pytest.raises(DatabaseError), habits.collector.database.read() as session:
            queries.report_page(session, 1, 1, b"", None, 1000)
    else:
        collector, key = habits.collector, TOKEN_KEY
        with (
            patch.object(collector.writer, "act", collector.database.act),
            pytest.raises(DatabaseError),
        ):
            count_again(collector, key)
    assert habits.client.get("/readyz").status_code == 503
