"""Tables are made once and upgraded by `ldpkit migrate` alone; no command makes them in a wrong place."""

import os

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import event, inspect, text

from collector import create_app
from collector.db import Database
from collector.migrations import make, migrate
from collector.models import Base
from collector.wal import served_alone
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from tests.kit.collectors import build_report
from tests.kit.errors import raises
from tests.kit.operators import main_on, run_on


@pytest.fixture
def database(database_url):
    made = Database(database_url, 10)
    yield made
    made.engine.dispose()


def test_created_tables_match_the_models(database):
    make(database)
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def tables(database):
    return set(inspect(database.engine).get_table_names()) - {"alembic_version"}


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


def set_revision(database, revision):
    with database.writing_connection() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{revision}'")


def test_a_later_release_is_refused(database, database_url, tmp_path):
    make(database)
    set_revision(database, "9999")
    with raises(InputError, "database.other_release", "9999") as caught:
        create_app({"database": database_url})
    # An earlier release's database could be migrated.
    assert "ldpkit migrate" not in str(caught.value)
    with raises(InputError, "database.other_release", "start that release"):
        run_on(database_url, "backup", "--out", str(tmp_path / "copy"))
    database.engine.dispose()
    with raises(InputError, "database.state_invalid", "9999"):
        migrate(database)


def test_earlier_revision_is_backed_up_and_upgraded_by_migrate(database, database_url, tmp_path, monkeypatch):
    """There is one revision so far: the upgrade from the one before is a step that the test states."""

    def upgrade(config, _to):
        with MigrationContext.configure(config.attributes["connection"]).begin_transaction():
            config.attributes["connection"].execute(text("UPDATE alembic_version SET version_num = '0001'"))

    make(database)
    set_revision(database, "0000")
    with raises(InputError, "database.other_release", "make a backup, and run `ldpkit migrate`"):
        create_app({"database": database_url})
    if database_url.startswith("sqlite"):
        run_on(database_url, "backup", "--out", str(tmp_path / "copy"))
        with served_alone(database.file), raises(InputError, "database.served_already"):
            migrate(database)
    database.engine.dispose()
    monkeypatch.setattr(command, "upgrade", upgrade)
    migrate(database)
    create_app({"database": database_url})


COMMANDS = (["serve", "--port", "0"], ["migrate"], ["backup", "--out", "copy"], ["serve", "--as", "issuer"])


def test_commands_do_not_create_missing_database(elsewhere, capsys):
    for arguments in COMMANDS:
        assert main(arguments) == 3
        error = capsys.readouterr().err
        assert f"there is no database {elsewhere}/ldpkit.sqlite3" in error
        assert error.count("\n") == 1
        assert os.listdir(elsewhere) == []


def test_an_empty_database_is_not_filled(database_url, capsys):
    """With a wrong URL or an unmounted disk, there may be a file or a database without tables."""
    if database_url.startswith("sqlite"):
        open(database_url.removeprefix("sqlite:///"), "w").close()
    for arguments in COMMANDS:
        assert main_on(database_url, *arguments) == 3
        assert "has no collector's tables" in capsys.readouterr().err
    database = Database(database_url, 1)
    assert tables(database) == set()
    database.engine.dispose()


@pytest.mark.attack(10)
def test_server_stores_nothing_in_database_of_other_release(habits, study):
    """The database is migrated under a server of the earlier release, which must store nothing more."""
    before, after = build_report(study), build_report(study)
    assert habits.put(before).status_code == 201
    set_revision(habits.collector.database, "9999")
    answer = habits.put(after)
    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    assert habits.post([after.to_document()]).status_code == 503
    assert len(habits.sql("SELECT * FROM reports")) == 1
