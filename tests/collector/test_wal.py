"""A database file and its log: a server writes into no file but its own, and applies no other's log."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from contextlib import closing
from urllib.error import HTTPError

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from collector import store, wal
from collector.backup import back_up
from collector.db import Database
from collector.migrations import check, make
from ldp_client.documents.errors import InputError
from tests.collector.answered import problem
from tests.kit.collectors import START_SECONDS, build_report, build_study
from tests.kit.errors import raises


def sidecar(path):
    """As another process has the database."""
    return Database(f"sqlite:///{path}", 10)


def restored(path):
    copy = path.with_name("backup.sqlite3")
    os.replace(copy, path)


def moved(path):
    shutil.move(path, path.with_name("elsewhere.sqlite3"))


def overwritten(path):
    shutil.copyfile(path.with_name("backup.sqlite3"), path)


@pytest.mark.attack(10)
@pytest.mark.parametrize("change", [restored, moved, overwritten])
def test_server_with_replaced_database_acknowledges_nothing(habits, study, caplog, change):
    """Put a backup in the place of a running server's database, or move it away:
    nothing more is acknowledged."""
    assert habits.put(build_report(study)).status_code == 201
    back_up(sidecar(habits.path), habits.path.with_name("backup.sqlite3"))
    change(habits.path)
    for _ in range(12):
        assert problem(habits.put(build_report(study))) == (503, "unavailable")
    assert habits.publish(build_study(2)).status_code == 503
    assert habits.client.get("/readyz").status_code == 503
    assert habits.client.get("/healthz").status_code == 200
    assert "the database cannot be used" in caplog.text


def ids_in(path):
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {row[0].hex() for row in connection.execute("SELECT id FROM reports")}


def log_of(path):
    return path.with_name(path.name + "-wal")


@pytest.mark.attack(10)
@pytest.mark.slow
def test_stopping_server_does_not_change_restored_file(start_server, tmp_path, study):
    """A backup is put in place before the server is stopped: its log must not be written
    into the other file."""
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


@pytest.mark.attack(10)
def test_log_held_by_another_reader_is_reported_at_stop(habits, study, monkeypatch, caplog):
    """Another program reads while the server stops: a copy of the file alone lacks the last report."""
    monkeypatch.setattr(wal, "BUSY_SECONDS", 0.05)
    said = f"{habits.path.name}-wal was not written into its file: another program still reads it"
    # Also the day's upkeep, which no reader may hold up.
    assert habits.put(build_report(study)).status_code == 201
    with closing(sqlite3.connect(habits.path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM reports").fetchall()
        with wal.served_alone(habits.path):
            assert habits.put(build_report(study)).status_code == 201
        assert said in caplog.text
        caplog.clear()
        reader.rollback()
        with wal.served_alone(habits.path):
            pass
    assert not caplog.text
    assert log_of(habits.path).stat().st_size == 0


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


@pytest.mark.attack(10)
@pytest.mark.parametrize("put", [os.replace, shutil.copyfile])
def test_inspected_backup_is_not_taken_for_file_of_log(habits, study, tmp_path, put):
    """Look into a backup, so that it gets a log of its own, and put it in place of the file."""
    before = build_report(study)
    habits.put(before)
    copy = tmp_path / "backup.sqlite3"
    back_up(sidecar(habits.path), copy)
    habits.put(build_report(study))
    path, untouched = killed(habits, tmp_path / "dead"), copy.read_bytes()
    look(copy)
    assert copy.read_bytes() == untouched
    # Nor is it where it has had a log of its own since.
    with sidecar(copy).write() as session:
        session.execute(text("UPDATE studies SET closed = closed"))
    put(copy, path)
    with raises(InputError, "database.foreign_log"):
        check(sidecar(path))
    log_of(path).rename(path.with_name("aside"))
    check(sidecar(path))
    assert ids_in(path) == {before.id}


@pytest.mark.attack(10)
def test_earlier_served_file_is_not_taken_for_file_of_log(habits, make_harness, study, tmp_path):
    """Put an earlier copy of the served file in place: its header is like that of the file with the log."""
    habits.collector.close()
    habits.collector.database.engine.dispose()
    stopped = tmp_path / "stopped.sqlite3"
    shutil.copyfile(habits.path, stopped)
    with wal.served_alone(habits.path):
        again = make_harness()
        assert again.put(build_report(study)).status_code == 201
        path = killed(again, tmp_path / "dead")
    os.replace(stopped, path)
    with raises(InputError, "database.foreign_log"):
        check(sidecar(path))


@pytest.mark.attack(10)
def test_copy_of_running_file_is_not_taken_for_file_of_log(habits, study):
    """Move a copy in place that was made since the server's start: it has the mark of the log."""
    path = habits.path
    habits.put(build_report(study))
    copy = shutil.copyfile(path, path.with_name("copy.sqlite3"))
    habits.put(build_report(study))
    assert wal.mark_of(copy)[2] == wal.mark_of(path)[2]
    os.replace(copy, path)
    with raises(InputError, "database.foreign_log"):
        check(sidecar(path))


def test_place_copied_with_its_log_works(habits, study, tmp_path):
    report = build_report(study)
    habits.put(report)
    path = killed(habits, tmp_path / "copy")
    check(sidecar(path))
    assert ids_in(path) == {report.id}


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


@pytest.mark.attack(10)
def test_served_file_copied_over_running_database_is_detected(habits, study):
    """Copy a served backup over the file of a running server, which has the same kind of header."""
    habits.put(build_report(study))
    copy = habits.path.with_name("backup.sqlite3")
    back_up(sidecar(habits.path), copy)
    other = Database(f"sqlite:///{copy}", 10)
    with other.write() as session:
        session.execute(text("UPDATE studies SET closed = closed"))
    other.engine.dispose()
    overwritten(habits.path)
    assert problem(habits.put(build_report(study))) == (503, "unavailable")
    assert habits.client.get("/readyz").status_code == 503


@pytest.mark.attack(10)
def test_log_of_overwritten_file_is_kept_aside(habits, study, caplog):
    """Copy a backup over the file of a running server: the log has acknowledged reports."""
    copy = habits.path.with_name("backup.sqlite3")
    back_up(sidecar(habits.path), copy)
    assert habits.put(build_report(study)).status_code == 201
    log = log_of(habits.path).read_bytes()
    overwritten(habits.path)
    assert habits.put(build_report(study)).status_code == 503
    (aside,) = habits.path.parent.glob("*-wal.replaced-*")
    assert aside.read_bytes() == log
    assert aside.stat().st_mode & 0o777 == 0o600
    assert str(aside) in caplog.text
    assert not log_of(habits.path).stat().st_size


@pytest.mark.attack(10)
def test_concurrent_start_keeps_one_log(tmp_path):
    """Two workers start at once: none may take the log in use for another file's and empty it."""
    path = tmp_path / "collector.sqlite3"
    made = sidecar(path)
    make(made)
    made.engine.dispose()
    first, second = (Database(f"sqlite:///{path}", 10, 10) for _ in range(2))
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


def damage(path, page):
    """Overwrite a page of a database's file."""
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\7" * size)


@pytest.mark.attack(10)
def test_damaged_file_rejects_further_reports(habits, study, caplog):
    """A page of the file is damaged: reports that are acknowledged into it would be lost with it."""
    habits.put(build_report(study))
    with closing(sqlite3.connect(habits.path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'reports'").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        damage(habits.path, page)
        # Another change, so that nobody has the page in memory.
        connection.execute("UPDATE studies SET closed = closed")
        connection.commit()
    for _ in range(3):
        assert problem(habits.put(build_report(study))) == (503, "unavailable")
        assert habits.client.get("/readyz").status_code == 503
    assert habits.publish(build_study(id="others")).status_code == 503
    assert caplog.text.count("is damaged: stop the server") == 1


def test_damaged_report_page_raises_error_when_read(filled):
    """Rows are read past SQLAlchemy, so that servers used to go on."""
    database = filled.collector.database
    filled.collector.close()
    database.engine.dispose()
    with closing(sqlite3.connect(filled.path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'reports'").fetchone()
    damage(filled.path, page)
    with pytest.raises(DatabaseError), database.read() as session:
        store.report_page(session, 1, 1, b"", 1000)
    assert filled.client.get("/readyz").status_code == 503


class FullDisk(sqlite3.Connection):
    """The disk is full once FILE-mark is written."""

    def execute(self, sql, *values):
        if sql.startswith("PRAGMA user_version ="):
            super().execute("PRAGMA max_page_count = 1")
            return super().execute("CREATE TABLE more AS SELECT randomblob(99999)")
        return super().execute(sql, *values)


@pytest.mark.attack(10)
def test_start_fails_when_a_mark_is_half_written(tmp_path, monkeypatch):
    """The next start would take the log, with acknowledged reports, for another file's."""
    path = tmp_path / "collector.sqlite3"
    make(sidecar(path))
    connect = sqlite3.connect
    with monkeypatch.context() as patched:
        patched.setattr(wal.sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=FullDisk))
        with raises(InputError, "database.no_mark", "database or disk is full"):
            wal.bind_next_log(path)
    wal.bind_next_log(path)
    assert not wal.has_foreign_log(path)


@pytest.mark.attack(10)
def test_workers_keep_the_mark_of_their_start(tmp_path):
    """A worker that starts while others have no connection: its own mark would lock the others out."""
    path = tmp_path / "collector.sqlite3"
    make(sidecar(path))
    marks = []
    for _ in range(2):
        with wal.served_alone(path):
            marks.append(wal.mark_of(path))
            worker = Database(f"sqlite:///{path}", 10, 10)
            check(worker)
            assert wal.mark_of(path) == marks[-1]
            worker.engine.dispose()
    assert len(set(marks)) == 2


def test_file_of_another_program_gets_no_mark(tmp_path):
    path = tmp_path / "other.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (line TEXT)")
    before = path.read_bytes()
    with wal.served_alone(path):
        pass
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
