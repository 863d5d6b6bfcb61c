"""`ldpkit backup`: whole, for its owner alone, and never in the place of another file."""

from datetime import date

import pytest
from sqlalchemy import text

from collector import backup
from collector.db import Database
from collector.models import TicketRow
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from tests.kit.collectors import build_report, build_study
from tests.kit.deleting import delete_reports
from tests.kit.errors import raises
from tests.kit.operators import run_on


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


COLUMNS = ("day FROM reports", "public FROM tickets", "day FROM upkeep")


@pytest.mark.attack(19)
def test_postgresql_backup_restores_elsewhere(make_harness, postgresql, study, tmp_path, monkeypatch):
    """Back up where shell and database write days and letters in another way; restore as another role."""
    source, target = postgresql.new_database(), postgresql.new_database("keeper")
    harness = make_harness(database=source)
    # Written the other way round it is the sixth of May.
    harness.day = date(2026, 6, 5)
    harness.publish(study)
    harness.put(build_report(study))
    database = harness.collector.database
    with database.write() as session:
        session.add(TicketRow(study=1, hash=bytes(32), public='{"city":"Zürich"}'))
        session.execute(text(f"ALTER DATABASE {database.url.database} SET DateStyle = 'German, DMY'"))
    with monkeypatch.context() as shell:
        for variable, value in {"PGDATESTYLE": "German, DMY", "PGCLIENTENCODING": "LATIN1"}.items():
            shell.setenv(variable, value)
        run_on(source, "backup", "--out", str(tmp_path / "copy"))
    backup.restore(Database(target, 10), tmp_path / "copy")
    with make_harness(database=target).collector.database.write() as session:
        rows = [session.scalars(text(f"SELECT {column}")).all() for column in COLUMNS]
        assert rows == [[harness.day], ['{"city":"Zürich"}'], [harness.day]]
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
