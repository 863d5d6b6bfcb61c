"""Migrations up and down with data, on SQLite and PostgreSQL."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest
from alembic import op
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text

from collector import create_app
from collector.storage.database import Database
from collector.storage.migrating import downgrade, migrate
from collector.storage.models import Base
from schemas.errors import InputError

FIRST = "0001"


@pytest.fixture
def database(database_url):
    made = Database(database_url, 10)
    yield made
    made.engine.dispose()


def tables(database):
    return set(inspect(database.engine).get_table_names()) - {"alembic_version"}


def fill(database):
    report_id = os.urandom(16)
    with database.writing_connection() as connection:
        connection.execute(text("INSERT INTO studies VALUES (1, 's', 1, NULL, NULL, false)"))
        document = {"digest": "0" * 64, "canonical": b"{}"}
        connection.execute(text("INSERT INTO documents VALUES (1, 1, :digest, :canonical)"), document)
        report = {"id": report_id, "day": date(2026, 6, 15).isoformat(), "payloads": b"xyz"}
        connection.execute(text("INSERT INTO reports VALUES (1, :id, 1, :day, :payloads)"), report)
    return report_id


def stored(database):
    with database.engine.connect() as connection:
        rows = connection.execute(text("SELECT id, payloads FROM reports"))
        return [(bytes(row.id), bytes(row.payloads)) for row in rows]


def test_the_migrated_tables_are_the_models(database):
    migrate(database)
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_up_and_down_keep_the_reports(database):
    migrate(database)
    report_id = fill(database)
    downgrade(database, FIRST)
    assert stored(database) == [(report_id, b"xyz")]
    migrate(database)
    assert stored(database) == [(report_id, b"xyz")]
    assert tables(database) == set(Base.metadata.tables)


def test_down_to_nothing_and_up_again(database):
    migrate(database)
    fill(database)
    downgrade(database, "base")
    assert tables(database) == set()
    migrate(database)
    assert stored(database) == []


def test_tables_of_the_first_release_are_taken_over(database):
    migrate(database)
    downgrade(database, FIRST)
    report_id = fill(database)
    with database.writing_connection() as connection:
        connection.execute(text("DROP TABLE alembic_version"))
    migrate(database)
    assert stored(database) == [(report_id, b"xyz")]


def test_several_processes_may_migrate_at_once(database_url):
    databases = [Database(database_url, 30) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(migrate, databases)) == [None] * 6
    assert tables(databases[0]) == set(Base.metadata.tables)
    for database in databases:
        database.engine.dispose()


def test_a_later_release_is_refused(database, database_url):
    migrate(database)
    with database.writing_connection() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(InputError, match="is not this release's"):
        create_app({"database": database_url})


def test_a_failed_migration_leaves_nothing(database, monkeypatch):
    genuine = op.create_table

    def failing(name, *parts, **options):
        if name == "reports":
            raise OSError("defect")
        genuine(name, *parts, **options)

    monkeypatch.setattr(op, "create_table", failing)
    with pytest.raises(OSError, match="defect"):
        migrate(database)
    assert tables(database) == set()
