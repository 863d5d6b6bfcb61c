"""Migrations up and down with data, on SQLite and PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest
from alembic import op
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text
from sqlalchemy.orm import Session

from collector import create_app
from collector.reports.rules import RuleBook
from collector.reports.running_summary import build_sums
from collector.storage.database import Database
from collector.storage.migrating import downgrade, make, migrate
from collector.storage.models import Base
from collector.storage.packing import PackedReport
from collector.storage.partitions import make_partition
from collector.storage.sums import read_sums
from ldp_client.documents.errors import InputError
from summaries import summarize
from tests.collector.conftest import build_report, build_study

FIRST = "0001"


@pytest.fixture
def database(database_url):
    made = Database(database_url, 10)
    yield made
    made.engine.dispose()


def tables(database):
    """Without what PostgreSQL keeps of one study."""
    return set(inspect(database.engine).get_table_names()) - {"alembic_version", "reports_1"}


def fill(database):
    """Writes one study and one report by hand, as an earlier release would have them."""
    is_apart = database.engine.dialect.name == "postgresql" and foreign_keys(database) == []
    study = build_study()
    report = build_report(study)
    packed = PackedReport(bytes.fromhex(report.id), 1, b"".join(report.payloads.values()))
    with database.writing_connection() as connection:
        connection.execute(
            text("INSERT INTO studies (number, id, version, closed) VALUES (1, 'habits', 1, false)")
        )
        if is_apart:
            make_partition(Session(bind=connection), 1)
        document = {"digest": study.digest, "canonical": study.canonical()}
        connection.execute(text("INSERT INTO documents VALUES (1, 1, :digest, :canonical)"), document)
        row = {"id": packed.id, "day": date(2026, 6, 15).isoformat(), "payloads": packed.payloads}
        connection.execute(text("INSERT INTO reports VALUES (1, :id, 1, :day, :payloads)"), row)
    return packed, summarize(study, [report])


def foreign_keys(database):
    return inspect(database.engine).get_foreign_keys("reports")


def stored(database):
    with database.engine.connect() as connection:
        rows = connection.execute(text("SELECT id, payloads FROM reports"))
        return [PackedReport(bytes(row.id), 1, bytes(row.payloads)) for row in rows]


def kept_summary(database):
    with database.read() as session:
        tally = RuleBook(database).find("habits", 1).tally
        return tally.summary(read_sums(session, 1, 1, tally.size))


def test_the_made_tables_are_the_models(database):
    make(database)
    with database.engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), Base.metadata)
    missing = [(kind, constraint.table.name) for kind, constraint in differences]
    # See partitions.py.
    wanted = [("add_fk", "reports")] if database.engine.dialect.name == "postgresql" else []
    assert missing == wanted


def test_up_and_down_keep_the_reports(database):
    make(database)
    report, summary = fill(database)
    downgrade(database, FIRST)
    assert stored(database) == [report]
    migrate(database, build_sums)
    assert stored(database) == [report]
    assert kept_summary(database).to_json() == summary.to_json()
    assert tables(database) == set(Base.metadata.tables)


def test_down_to_nothing_and_up_again(database):
    make(database)
    fill(database)
    downgrade(database, "base")
    assert tables(database) == set()
    make(database)
    assert stored(database) == []


def test_tables_of_the_first_release_are_taken_over(database):
    make(database)
    downgrade(database, FIRST)
    report, _ = fill(database)
    with database.writing_connection() as connection:
        connection.execute(text("DROP TABLE alembic_version"))
    migrate(database, build_sums)
    assert stored(database) == [report]


def test_one_of_several_processes_makes_the_tables(database_url):
    databases = [Database(database_url, 30) for _ in range(6)]

    def makes(database):
        try:
            make(database)
        except InputError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(makes, databases)) == 1
    assert tables(databases[0]) == set(Base.metadata.tables)
    for database in databases:
        database.engine.dispose()


def test_a_later_release_is_refused(database, database_url):
    make(database)
    with database.writing_connection() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(InputError, match=r"is of a later release \(9999"):
        create_app({"database": database_url})
    database.engine.dispose()
    with pytest.raises(InputError, match="is not this release's"):
        migrate(database, build_sums)


def test_a_failed_migration_leaves_nothing(database, monkeypatch):
    genuine = op.create_table

    def failing(name, *parts, **options):
        if name == "reports":
            raise OSError("defect")
        genuine(name, *parts, **options)

    monkeypatch.setattr(op, "create_table", failing)
    with pytest.raises(OSError, match="defect"):
        make(database)
    assert tables(database) == set()
