"""`ldpkit backup`: whole, for its owner alone, and never in the place of another file."""

from datetime import date

import pytest
from sqlalchemy import text

from collector import backup
from collector.db import Database
from collector.migrations import make
from collector.models import TicketRow
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from tests.kit.collectors import build_report, build_study
from tests.kit.deleting import delete_reports
from tests.kit.errors import raises
from tests.kit.operators import main_on, run_on


@pytest.mark.parametrize("links", [True, False])
def test_backup_does_not_overwrite_an_existing_file(links, habits, tmp_path, monkeypatch):
    """The backup is readable by its owner only, also on file systems without links."""

    def refuse(_source, _target):
        raise PermissionError(1, "Operation not permitted")

    if not links:
        monkeypatch.setattr(backup.os, "link", refuse)
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
    assert [file.name for file in tmp_path.iterdir()] == ["text"]


SETTINGS = {"PGDATESTYLE": "German, DMY", "PGCLIENTENCODING": "LATIN1"}
ROWS = (
    "SELECT day FROM reports ORDER BY id",
    "SELECT public FROM tickets ORDER BY hash",
    "SELECT day FROM upkeep",
)


def rows_of(harness):
    with harness.collector.database.read() as session:
        return [session.execute(text(one)).scalars().all() for one in ROWS]


@pytest.mark.attack(19)
def test_postgresql_backup_restores_elsewhere(make_harness, postgresql, study, tmp_path, monkeypatch):
    """Back up where shell and database write days in another way, and restore without the roles there."""
    source, target = postgresql.new_database(), postgresql.new_database("keeper")
    harness = make_harness(database=source)
    # Written the other way round it is the sixth of May.
    harness.day = date(2026, 6, 5)
    harness.publish(study)
    harness.put(build_report(study))
    database = harness.collector.database
    with database.write() as session:
        session.add(TicketRow(study=1, hash=bytes(32), public='{"city":"Zürich"}'))
    before = rows_of(harness)
    assert before == [[harness.day], ['{"city":"Zürich"}'], [harness.day]]
    with database.writing_connection() as connection:
        connection.exec_driver_sql(
            f"ALTER DATABASE \"{database.url.database}\" SET DateStyle = 'German, DMY'"
        )
        connection.exec_driver_sql("CREATE ROLE reader")
        connection.exec_driver_sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    copy = tmp_path / "copy"
    with monkeypatch.context() as shell:
        for variable, value in SETTINGS.items():
            shell.setenv(variable, value)
        run_on(source, "backup", "--out", str(copy))
    with database.writing_connection() as connection:
        connection.exec_driver_sql("DROP OWNED BY reader")
        connection.exec_driver_sql("DROP ROLE reader")
    backup.restore(Database(target, 10), copy)
    restored = make_harness(database=target)
    assert rows_of(restored) == before
    with restored.collector.database.write() as session:
        session.execute(text("DELETE FROM tickets"))


def test_backup_includes_study_deleted_meanwhile(make_harness, postgresql, tmp_path, monkeypatch):
    """Emptying its table used to remove the reports from the backup's snapshot too."""
    source, target = postgresql.new_database(), postgresql.new_database()
    harness = make_harness(database=source)
    study = build_study()
    harness.publish(study)
    reports = sorted([build_report(study) for _ in range(5)], key=lambda report: report.id)
    for report in reports:
        harness.put(report)
    database, select, calls = harness.collector.database, backup.select, []
    # The study.
    harness.close()

    def delete_and_select(*arguments):
        calls.append(1)
        # The first table has been read.
        if len(calls) == 4:
            assert delete_reports(database, study.id) == 5
        return select(*arguments)

    monkeypatch.setattr(backup, "select", delete_and_select)
    copy = tmp_path / "copy"
    run_on(source, "backup", "--out", str(copy))
    backup.restore(Database(target, 10), copy)
    assert make_harness(database=target).exported() == reports


def test_an_earlier_releases_database_can_be_backed_up_before_it_is_migrated(tmp_path, capsys):
    """As the message says that refuses it: make a backup, and run `ldpkit migrate`."""
    database_url = f"sqlite:///{tmp_path / 'earlier.sqlite3'}"
    database = Database(database_url, 10)
    make(database)
    with database.writing_connection() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0000'")
    assert main_on(database_url, "serve", "--port", "0") == 3
    assert "make a backup, and run `ldpkit migrate`" in capsys.readouterr().err
    assert main_on(database_url, "backup", "--out", str(tmp_path / "backup")) == 0
    assert (tmp_path / "backup").stat().st_size > 1000
    with database.writing_connection() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    assert main_on(database_url, "backup", "--out", str(tmp_path / "later")) == 3
    assert "start that release" in capsys.readouterr().err
    database.engine.dispose()


@pytest.mark.parametrize("command", ["backup", "keygen"])
def test_out_to_standard_output_is_rejected_before_writing(elsewhere, capsys, command):
    """It wrote a file named `-`, and the shell's output file got only a message."""
    assert main(["init"]) == 0
    before = {path.name for path in elsewhere.iterdir()}
    capsys.readouterr()
    assert main([*command.split(), "--out", "-"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.startswith("ldpkit: --out -")) == ("", True)
    assert {path.name for path in elsewhere.iterdir()} == before
