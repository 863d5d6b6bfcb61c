"""`ldpkit restore`: what was there is kept, and nothing but a whole backup takes its place."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from collector import backup, wal
from collector.db import Database
from collector.migrations import check
from ldp_client.documents.errors import InputError
from tests.kit.collectors import build_report, build_study
from tests.kit.errors import raises
from tests.kit.operators import main_on


def test_restore_replaces_the_database(make_harness, database_url, postgresql, study, tmp_path):
    """With the reports up to the backup, and none that came later."""
    first = make_harness(database=database_url)
    first.publish(study)
    before = build_report(study)
    first.put(before)
    copy, url = tmp_path / "copy", database_url
    assert main_on(database_url, "backup", "--out", str(copy)) == 0
    assert first.put(build_report(study)).status_code == 201
    first.collector.close()
    if database_url.startswith("postgresql"):
        url = postgresql.new_database()
    assert main_on(url, "restore", str(copy)) == 0
    again = make_harness(database=url)
    assert again.exported() == [before]
    assert again.put(build_report(study)).status_code == 201


@pytest.mark.attack(12)
def test_each_restored_file_is_marked_as_copy(make_harness, tmp_path):
    """An issuer put back the file that a restore had replaced, and used codes got second tokens."""
    first = make_harness()
    first.collector.close()
    aside, place = tmp_path / "aside", f"sqlite:///{tmp_path / 'again.sqlite3'}"
    shutil.copyfile(first.path, aside)
    with closing(sqlite3.connect(aside)) as connection:
        assert connection.execute("SELECT is_copy FROM collector").fetchall() == [(0,)]
    assert main_on(place, "restore", str(aside)) == 0
    with closing(sqlite3.connect(tmp_path / "again.sqlite3")) as connection:
        assert connection.execute("SELECT is_copy FROM collector").fetchall() == [(1,)]


def killed(habits, study, tmp_path):
    """A place whose server was killed with reports in its log, and an earlier backup: (file, backup)."""
    copy, path = tmp_path / "copy.sqlite3", tmp_path / "dead" / "reports.sqlite3"
    habits.put(build_report(study))
    main_on(f"sqlite:///{habits.path}", "backup", "--out", str(copy))
    habits.put(build_report(study))
    path.parent.mkdir()
    for ending in ("", "-wal", "-mark"):
        shutil.copyfile(wal.sidecar(habits.path, ending), wal.sidecar(path, ending))
    return path, copy


def count(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM reports").fetchone()[0]


def test_restore_keeps_the_write_ahead_log_with_the_replaced_file(habits, study, tmp_path, capsys):
    """The restored database has the backup's reports; the replaced file still has all of them."""
    path, copy = killed(habits, study, tmp_path)
    capsys.readouterr()
    assert main_on(f"sqlite:///{path}", "restore", str(copy)) == 0
    replaced = path.with_name("reports.sqlite3.replaced-1")
    assert f"what was there is {replaced} now" in capsys.readouterr().out
    check(Database(f"sqlite:///{path}", 1))
    assert path.stat().st_mode & 0o077 == 0
    assert (count(path), count(replaced)) == (1, 2)


def test_crash_during_restore_mixes_no_files(habits, study, tmp_path, monkeypatch):
    """After each rename: there is no database, or the restored one; and the same command ends it."""
    path, copy = killed(habits, study, tmp_path)
    command = ["restore", str(copy)]
    replace = os.replace

    def crash(source, target):
        replace(source, target)
        raise KeyboardInterrupt

    for is_there in (False, True):
        monkeypatch.setattr(backup.os, "replace", crash)
        assert main_on(f"sqlite:///{path}", *command) == 130
        assert path.exists() == is_there
        monkeypatch.undo()
    assert main_on(f"sqlite:///{path}", *command) == 0
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "reports.sqlite3",
        "reports.sqlite3-mark",
        "reports.sqlite3.replaced-1",
        "reports.sqlite3.replaced-2",
    ]
    replaced = path.with_name("reports.sqlite3.replaced-1")
    assert (count(path), count(replaced)) == (1, 2)


def test_restore_moves_a_foreign_write_ahead_log_away(habits, study, tmp_path):
    """The write-ahead log of another database is next to the file, as after `mv`."""
    path, copy = killed(habits, study, tmp_path)
    shutil.copyfile(copy, path)
    with raises(InputError, "database.foreign_log"):
        check(Database(f"sqlite:///{path}", 1))
    backup.restore(Database(f"sqlite:///{path}", 1), copy)
    check(Database(f"sqlite:///{path}", 1))
    assert (count(path), count(path.with_name("reports.sqlite3.replaced-1"))) == (1, 1)
    assert path.with_name("reports.sqlite3-wal.replaced-1").stat().st_size


def test_a_restore_can_be_undone(habits, study, tmp_path):
    """The command prints the file's new name; a file with a write-ahead log next to it is rejected."""
    path, copy = killed(habits, study, tmp_path)
    database = Database(f"sqlite:///{path}", 1)
    with raises(InputError, "restore.has_log"):
        backup.restore(database, path)
    replaced = backup.restore(database, copy)
    backup.restore(database, replaced)
    assert count(path) == 2


def test_restore_is_rejected_while_a_server_runs(habits, study, tmp_path):
    path, copy = killed(habits, study, tmp_path)
    with wal.served_alone(path), raises(InputError, "database.served_already"):
        backup.restore(Database(f"sqlite:///{path}", 1), copy)
    # A server that ends has its log folded in.
    assert count(path) == 2


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"a text, not a database " * 100, "backup.copy_failed"),
        (b"", "backup.copy_failed"),
        (None, "restore.no_file"),
    ],
)
def test_file_that_is_not_a_backup_replaces_nothing(habits, study, tmp_path, content, code):
    path, _copy = killed(habits, study, tmp_path)
    before, other = path.read_bytes(), tmp_path / "other"
    if content is not None:
        other.write_bytes(content)
    with raises(InputError, code):
        backup.restore(Database(f"sqlite:///{path}", 1), other)
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.re*"))


def test_a_damaged_backup_replaces_nothing(habits, study, tmp_path):
    path, copy = killed(habits, study, tmp_path)
    with closing(sqlite3.connect(copy)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'reports'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with copy.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\7" * size)
    with pytest.raises(InputError, match=r"malformed|damaged"):
        backup.restore(Database(f"sqlite:///{path}", 1), copy)
    assert not list(path.parent.glob("*.replaced-*"))


@pytest.mark.attack(10)
def test_a_backup_with_a_flipped_bit_in_a_key_replaces_nothing(habits, study, tmp_path):
    """VACUUM copies the key out of order: a report under it would never be found by a withdrawal."""
    path, copy = killed(habits, study, tmp_path)
    keys = [os.urandom(32) for _ in range(200)]
    with closing(sqlite3.connect(copy)) as connection:
        connection.executemany("INSERT INTO removed_keys (hash) VALUES (?)", [(key,) for key in keys])
        connection.commit()
    key, content = sorted(keys)[100], copy.read_bytes()
    copy.write_bytes(content.replace(key, bytes([key[0] ^ 0x80]) + key[1:]))
    with raises(InputError, "backup.copy_damaged"):
        backup.restore(Database(f"sqlite:///{path}", 1), copy)
    assert not list(path.parent.glob("*.replaced-*"))


def test_postgresql_takes_a_backup_into_an_empty_database_alone(postgresql, make_harness, tmp_path):
    url = postgresql.new_database()
    make_harness(database=url).publish(build_study())
    copy = tmp_path / "copy"
    assert main_on(url, "backup", "--out", str(copy)) == 0
    with raises(InputError, "database.has_tables"):
        backup.restore(Database(url, 1), copy)


def test_failed_restore_leaves_postgresql_empty(postgresql, habits, tmp_path, monkeypatch):
    copy, database = tmp_path / "copy", Database(postgresql.new_database(), 1)
    backup.back_up(habits.collector.database, copy)

    def fail(_connection):
        raise OSError("defect")

    with monkeypatch.context() as patched:
        patched.setattr(backup, "_make_partitions", fail)
        with raises(InputError, "restore.not_writable"):
            backup.restore(database, copy)
    backup.restore(database, copy)


def test_backup_moves_a_collector_between_sqlite_and_postgresql(
    habits, make_harness, postgresql, study, tmp_path
):
    """Both ways: the reports are the same, and another study gets another number."""
    url, reports = postgresql.new_database(), [build_report(study) for _ in range(20)]
    assert {habits.put(report).status_code for report in reports} == {201}
    habits.withdraw(reports[0].id)
    backup.back_up(habits.collector.database, tmp_path / "first")
    backup.restore(Database(url, 10), tmp_path / "first")
    elephant = make_harness(database=url)
    assert elephant.exported() == habits.exported()
    assert elephant.put(reports[0]).status_code == 410
    assert elephant.publish(build_study(id="others")).status_code == 201
    backup.back_up(elephant.collector.database, tmp_path / "second")
    backup.restore(Database(f"sqlite:///{tmp_path / 'back.sqlite3'}", 10), tmp_path / "second")
    assert make_harness("back.sqlite3").exported() == habits.exported()


def test_restore_leaves_the_mark_to_the_server(habits, study, tmp_path):
    """Root restores: a mark of root's would keep the service's user from starting."""
    _path, copy = killed(habits, study, tmp_path)
    new = tmp_path / "new" / "reports.sqlite3"
    new.parent.mkdir()
    backup.restore(Database(f"sqlite:///{new}", 1), copy)
    assert list(new.parent.iterdir()) == [new]
