"""Backs up PostgreSQL where the database, or the shell, writes days and letters in another way: a restored
collector had other days, by which it deleted reports, and invitations whose values nobody has."""

from __future__ import annotations

from datetime import date

import pytest
from sqlalchemy import text

from collector.storage import backup
from collector.storage.models import InvitationRow
from tests.collector.commands import run
from tests.collector.conftest import build_report, build_study
from tests.collector.postgresql import restore
from tests.kit.deleting import delete_reports

ROWS = (
    "SELECT day FROM reports ORDER BY id",
    "SELECT public FROM invitations ORDER BY hash",
    "SELECT day FROM upkeep",
)
SETTINGS = {"PGDATESTYLE": "German, DMY", "PGCLIENTENCODING": "LATIN1"}


def rows_of(harness):
    with harness.collector.database.read() as session:
        return [session.execute(text(one)).scalars().all() for one in ROWS]


@pytest.mark.parametrize("where", ["shell", "database"])
def test_restored_backup_keeps_dates_and_text(make_harness, postgresql, tmp_path, monkeypatch, where):
    source, target = postgresql.new_database(), postgresql.new_database()
    harness = make_harness(database=source)
    # Written the other way round it is the sixth of May.
    harness.day = date(2026, 6, 5)
    study = build_study()
    harness.publish(study)
    harness.put(build_report(study))
    with harness.collector.database.write() as session:
        session.add(InvitationRow(study=1, hash=bytes(32), public='{"city":"Zürich"}'))
    before = rows_of(harness)
    assert before == [[harness.day], ['{"city":"Zürich"}'], [harness.day]]
    if where == "database":
        name = harness.collector.database.url.database
        with harness.collector.database.writing_connection() as connection:
            connection.exec_driver_sql(f"ALTER DATABASE \"{name}\" SET DateStyle = 'German, DMY'")
            connection.exec_driver_sql(f"ALTER DATABASE \"{name}\" SET client_encoding = 'LATIN1'")
    dump = tmp_path / "copy.sql"
    with monkeypatch.context() as shell:
        for variable, value in SETTINGS.items() if where == "shell" else ():
            shell.setenv(variable, value)
        run("backup", "--out", str(dump), "--database", source)
    restore(dump, target)
    assert rows_of(make_harness(database=target)) == before


def test_backup_includes_study_deleted_during_the_dump(make_harness, postgresql, tmp_path, monkeypatch):
    """Emptying its table used to remove the reports from the backup's snapshot too."""
    source, target = postgresql.new_database(), postgresql.new_database()
    harness = make_harness(database=source)
    study = build_study()
    harness.publish(study)
    reports = sorted([build_report(study) for _ in range(5)], key=lambda report: report.id)
    for report in reports:
        harness.put(report)
    database, dump_part, deleted = harness.collector.database, backup._pg_dump, []
    # The study.
    harness.close()

    def dump_and_delete(*arguments):
        dump_part(*arguments)
        if not deleted:
            deleted.append(delete_reports(database, study.id))

    monkeypatch.setattr(backup, "_pg_dump", dump_and_delete)
    dump = tmp_path / "copy.sql"
    run("backup", "--out", str(dump), "--database", source)
    assert deleted == [5]
    restore(dump, target)
    assert make_harness(database=target).exported() == reports
