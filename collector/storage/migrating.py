"""Bringing a database's tables to the form that this release works with."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from collector.storage.database import Database, one_line
from schemas.errors import InputError

LOGGER = logging.getLogger("collector")
SCRIPTS = "collector.storage:migrations"
# Any number that no other program on the same PostgreSQL database takes.
LOCK = 5_132_781_660_174


def migrate(database: Database) -> None:
    """Make the tables this release's, in one transaction; nothing is left of a failed attempt.

    Several processes may do so at once. Raises InputError when the database cannot be opened, or
    belongs to a later release.
    """
    with _exclusive(database) as connection:
        config = _config(connection)
        now = MigrationContext.configure(connection).get_current_revision()
        if now is None and not inspect(connection).has_table("studies"):
            # Devices drop reports for studies that are unknown: a wrong folder or name must be noticed.
            LOGGER.warning("the database %s is new and has no studies", database.url.render_as_string())
        if now != ScriptDirectory.from_config(config).get_current_head():
            command.upgrade(config, "head")


@contextmanager
def migrated(url: str, busy_timeout: float) -> Iterator[Database]:
    """A database for a command beside the server. Raises InputError for all that the database refuses."""
    database = Database(url, busy_timeout)
    try:
        migrate(database)
        yield database
    except SQLAlchemyError as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise _refused(database, f"{one_line(cause)}; what was done is kept, run it again") from error
    finally:
        database.engine.dispose()


def downgrade(database: Database, revision: str) -> None:
    """Take the tables back to an earlier revision, "base" for none at all. Raises InputError."""
    with _exclusive(database) as connection:
        command.downgrade(_config(connection), revision)


@contextmanager
def _exclusive(database: Database) -> Iterator[Connection]:
    try:
        with database.writing_connection() as connection:
            _wait_for_others(connection)
            yield connection
    except CommandError as error:
        raise _refused(database, f"is not this release's: {one_line(error)}") from None
    except SQLAlchemyError as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise _refused(database, one_line(cause)) from error
    finally:
        # A connection must not cross the fork that starts a worker.
        database.engine.dispose()


def _wait_for_others(connection: Connection) -> None:
    """On SQLite the write transaction alone keeps others out."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", SCRIPTS)
    config.attributes["connection"] = connection
    return config


def _refused(database: Database, reason: str) -> InputError:
    return InputError(f"database {database.url.render_as_string()}: {reason}")
