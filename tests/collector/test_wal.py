"""A database file and its log: a server writes into no file but its own, and applies no other's log."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import text

from collector import wal
from collector.backup import back_up
from collector.db import Database
from collector.migrations import check
from ldp_client.documents.errors import InputError
from tests.kit.answers import problem
from tests.kit.collectors import build_report, build_study, damage_reports, ensure_database
from tests.kit.errors import raises


def opened(path):
    """As another process has the database."""
    return Database(f"sqlite:///{path}", 10)


def change(path):
    """Write something, so that the file has a log of its own."""
    database = opened(path)
    with database.write() as session:
        session.execute(text("UPDATE studies SET closed = closed"))
    database.engine.dispose()


def backup_of(path):
    copy = path.with_name("backup.sqlite3")
    back_up(opened(path), copy)
    return copy


def overwritten(path):
    copy = backup_of(path)
    change(copy)
    shutil.copyfile(copy, path)


REPLACED = {
    "restored": lambda path: os.replace(backup_of(path), path),
    "moved": lambda path: shutil.move(path, path.with_name("elsewhere.sqlite3")),
    "overwritten": lambda path: shutil.copyfile(backup_of(path), path),
    "overwritten by a served file": overwritten,
}


def ids_in(path):
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {row[0].hex() for row in connection.execute("SELECT id FROM reports")}


@pytest.mark.attack(10)
@pytest.mark.parametrize("how", REPLACED)
def test_server_with_replaced_database_acknowledges_nothing(habits, study, caplog, how):
    """Put a backup in the place of a running server's database, or move it away.

    Nothing more is acknowledged, and the log with what was acknowledged is kept.
    """
    path = habits.path
    assert habits.put(build_report(study)).status_code == 201
    REPLACED[how](path)
    log = wal.sidecar(path, "-wal").read_bytes()
    for _ in range(12):
        assert problem(habits.put(build_report(study))) == (503, "unavailable")
    assert habits.publish(build_study(2)).status_code == 503
    assert habits.client.get("/readyz").status_code == 503
    assert habits.client.get("/healthz").status_code == 200
    assert "the database cannot be used" in caplog.text
    # No empty one takes its place.
    assert path.exists() == (how != "moved")
    if how == "overwritten":
        (aside,) = path.parent.glob("*-wal.replaced-*")
        assert (aside.read_bytes(), aside.stat().st_mode & 0o777) == (log, 0o600)
        assert str(aside) in caplog.text
        assert not wal.sidecar(path, "-wal").stat().st_size


@pytest.mark.attack(10)
def test_stopping_server_does_not_change_restored_file(habits, study, caplog):
    """A backup is put in place before the server stops, which must not write its log into it."""
    path, before, after = habits.path, build_report(study), build_report(study)
    kept = path.with_name("kept.sqlite3")
    with wal.served_alone(path):
        assert habits.put(before).status_code == 201
        copy = backup_of(path)
        assert habits.put(after).status_code == 201
        os.link(path, kept)
        os.replace(copy, path)
        restored = path.read_bytes()
    assert path.read_bytes() == restored
    (aside,) = path.parent.glob("*-wal.replaced-1")
    assert str(aside) in caplog.text
    check(opened(path))
    assert ids_in(path) == {before.id}
    # Nothing that was acknowledged is lost to whoever wants it back.
    aside.rename(wal.sidecar(kept, "-wal"))
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
    assert wal.sidecar(habits.path, "-wal").stat().st_size == 0


def inspected_backup(path):
    """A backup that its operator looked into, and that has had a log of its own since."""
    copy = backup_of(path)
    untouched = copy.read_bytes()
    assert ids_in(copy)
    assert copy.read_bytes() == untouched
    change(copy)
    return copy


def earlier_file(path):
    """The served file as an earlier start left it: its header is like that of the file with the log."""
    copy = shutil.copyfile(path, path.with_name("earlier.sqlite3"))
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("PRAGMA user_version = 7")
    return copy


def killed(path, folder):
    """What a killed server leaves: its file, the log and FILE-mark beside it, in another folder."""
    folder.mkdir()
    for file in path.parent.glob(path.name + "*"):
        shutil.copyfile(file, folder / file.name)
    return folder / path.name


@pytest.mark.attack(10)
@pytest.mark.parametrize(
    ("make_copy", "put"),
    [
        (inspected_backup, os.replace),
        (inspected_backup, shutil.copyfile),
        (earlier_file, os.replace),
    ],
)
def test_copy_in_place_of_the_file_does_not_take_its_log(habits, study, tmp_path, make_copy, put):
    """Put a copy of a database where a killed server left its log."""
    report = build_report(study)
    assert habits.put(report).status_code == 201
    copy = make_copy(habits.path)
    # The place itself, copied with its log, works.
    whole, path = (killed(habits.path, tmp_path / name) for name in ("whole", "dead"))
    check(opened(whole))
    assert ids_in(whole) == {report.id}
    put(copy, path)
    with raises(InputError, "database.foreign_log"):
        check(opened(path))


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
        check(opened(path))


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
def test_damaged_file_rejects_further_reports(habits, study, caplog):
    """A page of the file is damaged: reports that are acknowledged into it would be lost with it."""
    habits.put(build_report(study))
    with closing(sqlite3.connect(habits.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        damage_reports(habits.path)
        # Another change, so that nobody has the page in memory.
        connection.execute("UPDATE studies SET closed = closed")
        connection.commit()
    for _ in range(3):
        assert problem(habits.put(build_report(study))) == (503, "unavailable")
        assert habits.client.get("/readyz").status_code == 503
    assert habits.publish(build_study(id="others")).status_code == 503
    assert caplog.text.count("is damaged: stop the server") == 1


@pytest.mark.attack(10)
def test_workers_keep_the_mark_of_their_start(tmp_path):
    """A worker that starts while others have no connection: its own mark would lock the others out."""
    path, marks = tmp_path / "collector.sqlite3", []
    ensure_database(f"sqlite:///{path}")
    for _ in range(2):
        with wal.served_alone(path):
            marks.append(wal.mark_of(path))
            worker = Database(f"sqlite:///{path}", 10, 10)
            check(worker)
            assert wal.mark_of(path) == marks[-1]
            worker.engine.dispose()
    assert len(set(marks)) == 2


@pytest.mark.attack(10)
def test_concurrent_start_keeps_one_log(tmp_path):
    """Two workers start at once: none may take the log in use for another file's and empty it."""
    path = tmp_path / "collector.sqlite3"
    ensure_database(f"sqlite:///{path}")
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
    assert not [*path.parent.glob("*.replaced-*")]
