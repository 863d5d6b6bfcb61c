"""Backups are whole and replace no file; a restore keeps what was there, and mixes nothing."""

import os
import shutil
import sqlite3
from contextlib import closing
from unittest.mock import Mock

import pytest

from collector import backup, wal
from collector.db import Database
from collector.migrations import check
from ldp_client.documents.errors import InputError, UsageError
from tests.kit.answers import delete_reports
from tests.kit.collectors import build_report, build_study, damage_reports
from tests.kit.errors import raises
from tests.kit.operators import main_on, run_on


def test_backup_does_not_overwrite_an_existing_file(habits, tmp_path):
    """The backup is readable by its owner only."""
    copy = tmp_path / "copy.sqlite3"
    command = ["backup", "--out", str(copy)]
    run_on(f"sqlite:///{habits.path}", *command)
    assert copy.stat().st_mode & 0o077 == 0
    before = copy.read_bytes()
    with raises(InputError, "files.exists"):
        run_on(f"sqlite:///{habits.path}", *command)
    assert copy.read_bytes() == before
    assert sorted(file.name for file in tmp_path.glob(".ldpkit*")) == []


def test_failed_backup_leaves_no_file(tmp_path):
    (tmp_path / "text").write_text("not a database, only a long enough text " * 100)
    for out, name, code in (
        ("copy", "nosuch", "database.missing_file"),
        ("no/copy", "text", "backup.not_writable"),
        ("copy", "text", "input.invalid"),
    ):
        with raises(InputError, code):
            run_on(f"sqlite:///{tmp_path / name}", "backup", "--out", str(tmp_path / out))
    with raises(UsageError, "backup.to_standard_output"):
        run_on(f"sqlite:///{tmp_path / 'text'}", "backup", "--out", "-")
    assert [file.name for file in tmp_path.iterdir()] == ["text"]


def test_backup_includes_study_deleted_meanwhile(
    elephant, make_harness, postgresql, study, tmp_path, monkeypatch
):
    """The backup is one snapshot, so that it has the reports too."""
    target, report = postgresql.new_database(), build_report(study)
    elephant.put(report)
    database, select, calls = elephant.collector.database, backup.select, []

    def delete_and_select(*arguments):
        calls.append(1)
        # The first table has been read.
        if len(calls) == 4:
            assert delete_reports(database, study.id) == 1
        return select(*arguments)

    monkeypatch.setattr(backup, "select", delete_and_select)
    backup.back_up(database, tmp_path / "copy")
    assert main_on(target, "restore", str(tmp_path / "copy")) == 0
    assert make_harness(database=target).exported() == [report]


def restore(path, copy):
    return backup.restore(Database(f"sqlite:///{path}", 1), copy)


def read(path, query="SELECT count(*) FROM reports"):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchone()[0]


@pytest.fixture
def killed(habits, study, tmp_path):
    """A place whose server was killed with reports in its log, and an earlier backup: (file, backup)."""
    copy, path = tmp_path / "copy.sqlite3", tmp_path / "dead" / "reports.sqlite3"
    habits.put(build_report(study))
    backup.back_up(habits.collector.database, copy)
    habits.put(build_report(study))
    path.parent.mkdir()
    for ending in ("", "-wal", "-mark"):
        shutil.copyfile(wal.sidecar(habits.path, ending), wal.sidecar(path, ending))
    return path, copy


def test_a_restore_keeps_the_replaced_file_with_its_log_and_can_be_undone(killed, capsys):
    path, copy = killed
    with raises(InputError, "restore.has_log"):
        restore(path, path)
    assert main_on(f"sqlite:///{path}", "restore", str(copy)) == 0
    replaced = path.with_name("reports.sqlite3.replaced-1")
    assert f"what was there is {replaced} now" in capsys.readouterr().out
    check(Database(f"sqlite:///{path}", 1))
    assert path.stat().st_mode & 0o077 == 0
    assert (read(path), read(replaced)) == (1, 2)
    # An issuer gives no tokens from a copy.
    is_copy = "SELECT is_copy FROM collector"
    assert (read(replaced, is_copy), read(path, is_copy)) == (0, 1)
    restore(path, replaced)
    assert read(path) == 2


def test_crash_during_restore_mixes_no_files(killed, monkeypatch):
    """After each rename: there is no database, or the restored one; and the same command ends it."""
    path, copy = killed
    replace = os.replace

    def crash(source, target):
        replace(source, target)
        raise KeyboardInterrupt

    for is_there in (False, True):
        monkeypatch.setattr(backup.os, "replace", crash)
        with pytest.raises(KeyboardInterrupt):
            restore(path, copy)
        assert path.exists() == is_there
        monkeypatch.undo()
    restore(path, copy)
    left = ["", "-mark", ".replaced-1", ".replaced-2"]
    assert sorted(file.name for file in path.parent.iterdir()) == [f"{path.name}{one}" for one in left]
    assert (read(path), read(path.with_name("reports.sqlite3.replaced-1"))) == (1, 2)


def test_restore_moves_a_foreign_write_ahead_log_away(killed):
    """The write-ahead log of another database is next to the file, as after `mv`."""
    path, copy = killed
    shutil.copyfile(copy, path)
    restore(path, copy)
    check(Database(f"sqlite:///{path}", 1))
    assert (read(path), read(path.with_name("reports.sqlite3.replaced-1"))) == (1, 1)
    assert path.with_name("reports.sqlite3-wal.replaced-1").stat().st_size


def damage_key(copy):
    """VACUUM copies the key out of order: a report under it would never be found by a withdrawal."""
    keys = sorted(os.urandom(32) for _ in range(200))
    with closing(sqlite3.connect(copy)) as connection:
        connection.executemany("INSERT INTO removed_keys (hash) VALUES (?)", [(key,) for key in keys])
        connection.commit()
    key = keys[100]
    copy.write_bytes(copy.read_bytes().replace(key, bytes([key[0] ^ 0x80]) + key[1:]))


@pytest.mark.attack(10)
@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda copy: copy.write_bytes(b"a text, not a database " * 100), "backup.copy_failed"),
        (lambda copy: copy.write_bytes(b""), "backup.copy_failed"),
        (lambda copy: copy.unlink(), "restore.no_file"),
        (damage_reports, "backup.copy_failed"),
        (damage_key, "backup.copy_damaged"),
    ],
    ids=["a text", "empty", "missing", "a damaged page", "a flipped bit in a key"],
)
def test_file_that_is_not_a_whole_backup_replaces_nothing(killed, damage, code):
    """Restore what is no backup, or one that the disk damaged."""
    path, copy = killed
    before = path.read_bytes()
    damage(copy)
    with raises(InputError, code):
        restore(path, copy)
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.re*"))


def test_restore_is_rejected_while_a_server_runs(killed):
    path, copy = killed
    with wal.served_alone(path), raises(InputError, "database.served_already"):
        restore(path, copy)
    # A server that ends has its log folded in.
    assert read(path) == 2


def test_backup_moves_a_collector_between_sqlite_and_postgresql(
    habits, make_harness, postgresql, study, tmp_path, monkeypatch
):
    database, reports = Database(postgresql.new_database(), 10), [build_report(study) for _ in range(20)]
    assert {habits.put(report).status_code for report in reports} == {201}
    habits.withdraw(reports[0].id)
    backup.back_up(habits.collector.database, tmp_path / "first")
    with monkeypatch.context() as patched:
        patched.setattr(backup, "_make_partitions", Mock(side_effect=OSError("defect")))
        with raises(InputError, "restore.not_writable"):
            backup.restore(database, tmp_path / "first")
    backup.restore(database, tmp_path / "first")
    with raises(InputError, "database.has_tables"):
        backup.restore(database, tmp_path / "first")
    elephant = make_harness(database=database.url.render_as_string(False))
    assert elephant.exported() == habits.exported()
    assert elephant.put(reports[0]).status_code == 410
    assert elephant.publish(build_study(id="others")).status_code == 201
    backup.back_up(elephant.collector.database, tmp_path / "second")
    restore(tmp_path / "back.sqlite3", tmp_path / "second")
    assert make_harness("back.sqlite3").exported() == habits.exported()
