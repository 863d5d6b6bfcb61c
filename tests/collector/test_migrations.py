"""The initial schema, and upgrades to a later one, on SQLite and PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import event, inspect, text

from collector import create_app
from collector.storage.database import Database
from collector.storage.migrating import make, migrate
from collector.storage.models import Base
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises


@pytest.fixture
def database(database_url):
    made = Database(database_url, 10)
    yield made
    made.engine.dispose()


def tables(database):
    return set(inspect(database.engine).get_table_names()) - {"alembic_version"}


def test_created_tables_match_the_models(database):
    make(database)
    with database.engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), Base.metadata)
    missing = [(kind, constraint.table.name) for kind, constraint in differences]
    # See partitions.py.
    wanted = [("add_fk", "reports")] if database.engine.dialect.name == "postgresql" else []
    assert missing == wanted


def test_only_one_concurrent_process_creates_the_tables(database_url):
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
    with raises(InputError, "database.other_release", "9999") as caught:
        create_app({"database": database_url})
    # An earlier release's database could be migrated.
    assert "ldpkit migrate" not in str(caught.value)
    database.engine.dispose()
    with raises(InputError, "database.state_invalid", "9999"):
        migrate(database)


def test_a_failed_migration_leaves_nothing(database):
    def fail(*_arguments, **_more):
        raise OSError("defect")

    reports = Base.metadata.tables["reports"]
    event.listen(reports, "after_create", fail)
    try:
        with pytest.raises(OSError, match="defect"):
            make(database)
    finally:
        event.remove(reports, "after_create", fail)
    assert tables(database) == set()


def test_earlier_revision_is_upgraded_by_migrate(database, database_url, monkeypatch):
    """There is one revision so far: the upgrade from the one before is a step that the test states."""

    def upgrade(config, _to):
        with MigrationContext.configure(config.attributes["connection"]).begin_transaction():
            config.attributes["connection"].execute(text("UPDATE alembic_version SET version_num = '0001'"))

    make(database)
    with database.writing_connection() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0000'"))
    with raises(InputError, "database.other_release", "`ldpkit migrate`"):
        create_app({"database": database_url})
    database.engine.dispose()
    monkeypatch.setattr(command, "upgrade", upgrade)
    migrate(database)
    create_app({"database": database_url})
