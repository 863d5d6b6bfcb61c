"""Migrations: bringing a database's tables to the form that this release needs."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.util.exc import CommandError
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from collector.db import Database, OtherReleaseError, one_line
from collector.models import REVISION
from collector.wal import COLLECTORS
from ldp_client.documents.errors import EXIT_NETWORK, InputError

SCRIPTS = "collector:migrations"
# Any number that no other program on the same PostgreSQL database takes.
LOCK = 5_132_781_660_174
LEAVING_SECONDS = 1.0
WHERE_ELSE = (
    "start in the folder that `ldpkit init` made, or name it in --database or ldpkit.toml; `ldpkit init` "
    "makes a new one"
)
CONNECTED = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


class Schema(NamedTuple):
    """The tables of one kind of server, and their history.

    scripts: the history, where Alembic finds it. revision: this release's. table: a table that only this kind
    has. whose: the tables' owner, in a word. advice: where else the tables may be. command: the command that
    migrates them to this release.
    """

    scripts: str
    revision: str
    table: str
    whose: str
    advice: str
    command: str = "ldpkit migrate"


COLLECTOR = Schema(SCRIPTS, REVISION, COLLECTORS, "collector's", WHERE_ELSE)


class UnreachedError(InputError):
    """The database's server cannot be reached."""

    exit_code = EXIT_NETWORK
    code = "database.unreachable"


def has_tables_of(database: Database, schema: Schema) -> bool:
    """Return True if a database is of this kind. False if it cannot be read: its use raises the error."""
    if not database.is_there:
        return False
    # A separate Database: the caller's would note damage, and stop.
    looking = Database(database.url.render_as_string(hide_password=False), database.lock_timeout)
    try:
        with looking.engine.connect() as connection:
            return inspect(connection).has_table(schema.table)
    except SQLAlchemyError:
        return False
    finally:
        looking.engine.dispose()


def make(
    database: Database, schema: Schema = COLLECTOR, fill: Callable[[Connection], object] = lambda _: None
) -> None:
    """Make the tables in an empty database, and an SQLite file if needed, in one transaction.

    fill: writes the rows that the tables need from the start.
    Raises InputError if there are tables already.
    """
    database.make_file()
    with _exclusive(database) as connection:
        _require_unicode(database, connection)
        if set(inspect(connection).get_table_names()) - {"alembic_version"}:
            raise InputError(
                f"{database.shown} has tables already: there is nothing to make", code="database.has_tables"
            )
        command.upgrade(_config(connection, schema), "head")
        fill(connection)


def check(database: Database, or_earlier: bool = False, schema: Schema = COLLECTOR) -> None:
    """Raise InputError unless the tables are of this release, or with `or_earlier` of an earlier one."""
    database.require_file(schema.advice)
    try:
        with database.engine.connect() as connection:
            _require_unicode(database, connection)
            now = MigrationContext.configure(connection).get_current_revision()
            is_ours = inspect(connection).has_table(schema.table)
    except SQLAlchemyError as error:
        raise _failed(database, error) from error
    finally:
        # A connection must not cross the fork that starts a worker.
        database.engine.dispose()
    if not is_ours:
        raise InputError(
            f"{database.shown} has no {schema.whose} tables: {schema.advice}", code="database.no_tables"
        )
    if now != schema.revision and not (or_earlier and (now or "") < schema.revision):
        raise InputError(f"{database.shown} {_other_release(now, schema)}", code="database.other_release")


def migrate(database: Database, schema: Schema = COLLECTOR) -> None:
    """Migrate an earlier release's tables to this release, in one transaction or not at all.

    Raises InputError if there are no tables, if they belong to a later release, and while anything else
    is connected: a server of the earlier release would continue as if nothing had changed.
    """
    database.require_file(schema.advice)
    # Close our own connections, which would count as others.
    database.engine.dispose()
    _require_alone(database)
    with _exclusive(database) as connection:
        _require_unicode(database, connection)
        if not inspect(connection).has_table(schema.table):
            raise InputError(
                f"{database.shown} has no {schema.whose} tables: {schema.advice}", code="database.no_tables"
            )
        command.upgrade(_config(connection, schema), "head")


@contextmanager
def opened(url: str, lock_timeout: float, schema: Schema = COLLECTOR) -> Iterator[Database]:
    """Open a database for a command next to the server. Raises InputError for all database errors."""
    database = Database(url, lock_timeout)
    check(database, schema=schema)
    try:
        yield database
    except SQLAlchemyError as error:
        raise _failed(database, error, "; finished work is kept, run it again") from error
    except OtherReleaseError as error:
        raise _refused(database, str(error)) from error
    finally:
        database.engine.dispose()


@contextmanager
def _exclusive(database: Database) -> Iterator[Connection]:
    try:
        with database.writing_connection() as connection:
            _wait_for_others(connection)
            yield connection
    except CommandError as error:
        raise _refused(database, f"is not this release's: {one_line(error)}") from None
    except SQLAlchemyError as error:
        raise _failed(database, error) from error
    finally:
        # A connection must not cross the fork that starts a worker.
        database.engine.dispose()


def _require_unicode(database: Database, connection: Connection) -> None:
    """Raise InputError for a PostgreSQL database that cannot keep every text, or keeps texts as bytes."""
    if connection.dialect.name != "postgresql":
        return
    found = connection.execute(text("SHOW server_encoding")).scalar_one()
    if found != "UTF8":
        advice = "make another database, with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        raise InputError(
            f"{database.shown} is in the encoding {found}, and has to be in UTF8: {advice}",
            code="database.not_utf8",
        )


def _require_alone(database: Database) -> None:
    if database.engine.dialect.name == "sqlite":
        others = _is_shared(str(database.url.database), database.lock_timeout)
    else:
        others = _are_others(database)
    if others:
        raise InputError(
            f"{database.shown} is in use: stop every server and command that is connected to it",
            code="database.in_use",
        )


def _are_others(database: Database) -> bool:
    """Return True if another program is connected. PostgreSQL ends a connection soon after its program."""
    end = time.monotonic() + LEAVING_SECONDS
    while True:
        with _exclusive(database) as connection:
            others = connection.execute(text(CONNECTED)).scalar_one() > 0
        if not others or time.monotonic() > end:
            return bool(others)
        time.sleep(0.05)


def _is_shared(path: str, lock_timeout: float) -> bool:
    """Return True if another connection to an SQLite file is open: only the last one can remove its log."""
    with closing(
        sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=rw", lock_timeout, uri=True)
    ) as connection:
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
            # Restore the mode that this process's connections expect.
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                return True
            raise InputError(f"database {path}: {one_line(error)}", code="database.file_invalid") from None
        except sqlite3.DatabaseError as error:
            raise InputError(f"database {path}: {one_line(error)}", code="database.file_invalid") from None
    return False


def _other_release(revision: str | None, schema: Schema) -> str:
    ours = schema.revision
    if revision is not None and revision > ours:
        return f"is of a later release ({revision}, this one's is {ours}): start that release"
    advice = f"stop every server that uses it, make a backup, and run `{schema.command}`"
    return f"is of an earlier release ({revision or 'the first'}, this one's is {ours}): {advice}"


def _wait_for_others(connection: Connection) -> None:
    """Take the lock on PostgreSQL. On SQLite the write transaction alone keeps others out."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})


def _config(connection: Connection, schema: Schema = COLLECTOR) -> Config:
    config = Config()
    config.set_main_option("script_location", schema.scripts)
    config.attributes["connection"] = connection
    return config


def _failed(database: Database, error: SQLAlchemyError, advice: str = "") -> InputError:
    cause = error.orig if isinstance(error, DBAPIError) else error
    # PostgreSQL's errors have a code. The driver's have none if it got no answer.
    is_silent = isinstance(error, OperationalError) and getattr(cause, "sqlstate", "") is None
    kind = UnreachedError if is_silent else InputError
    return kind(f"{database.shown}: {one_line(cause)}{advice}")


def _refused(database: Database, reason: str) -> InputError:
    return InputError(f"{database.shown}: {reason}", code="database.state_invalid")
