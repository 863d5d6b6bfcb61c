"""Tables made and migrated by Alembic, and checks of a database before it is used."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.util.exc import CommandError
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from collector.db import OWNER_ONLY, Database
from collector.errors import OtherReleaseError, one_line
from collector.models import REVISION
from collector.wal import bind_next_log, has_foreign_log, locked, sidecar
from ldp_client.documents.errors import EXIT_NETWORK, InputError
from schemas.disk import write_new

# PostgreSQL settings, and values that make the server record when reports arrive.
TELLTALE = {
    "log_statement": ("mod", "all"),
    "log_min_duration_statement": ("0",),
    "log_min_duration_sample": ("0",),
    "track_commit_timestamp": ("on",),
}
# Any number that no other program on the same PostgreSQL database takes.
LOCK = 5_132_781_660_174
WHERE_ELSE = (
    "start in the folder that `ldpkit init` made, or name it in LDPKIT_DATABASE or ldpkit.toml; "
    "`ldpkit init` makes a new one"
)


class UnreachedError(InputError):
    """The database's server cannot be reached."""

    exit_code = EXIT_NETWORK
    code = "database.unreachable"


def make(database: Database, fill: Callable[[Connection], object] = lambda _: None) -> None:
    """Make the tables in an empty database, and an SQLite file if needed, in one transaction.

    fill: writes the rows that the tables need from the start.
    Raises InputError if there are tables already.
    """
    if database.file is not None and not database.file.exists():
        write_new(database.file, "", OWNER_ONLY)
    with _alone(database) as connection:
        if set(inspect(connection).get_table_names()) - {"alembic_version"}:
            raise InputError(
                f"{database.shown} has tables already: name an empty database", code="database.has_tables"
            )
        _upgrade(connection)
        fill(connection)


def migrate(database: Database) -> None:
    """Migrate an earlier release's tables to this release, in one transaction or not at all.

    Raises InputError if there are no tables, if they belong to a later release, and while a server works on
    an SQLite file. A server of the earlier release stores nothing more: see `store.study_state`.
    """
    require_file(database)
    with nullcontext() if database.file is None else locked(database.file), _alone(database) as connection:
        _require_tables(database, connection)
        _upgrade(connection)


def check(database: Database, or_earlier: bool = False) -> None:
    """Raise InputError unless the tables are of this release, or with `or_earlier` of an earlier one.

    A server outside `ldpkit serve` draws the first mark of its log.
    """
    require_file(database)
    if database.serves and database.file is not None:
        bind_next_log(database.file, again=False)
    with reporting_errors(database), database.engine.connect() as connection:
        _require_unicode(database, connection)
        _require_tables(database, connection)
        now = MigrationContext.configure(connection).get_current_revision() or ""
    if now > REVISION or (now < REVISION and not or_earlier):
        migrate = "stop every server that uses it, make a backup, and run `ldpkit migrate`"
        advice = "start that release" if now > REVISION else migrate
        raise InputError(
            f"{database.shown} is of release {now}, this one's is {REVISION}: {advice}",
            code="database.other_release",
        )


def require_file(database: Database) -> None:
    """Raise InputError if an SQLite file is missing, or would take in another file's log."""
    if database.file is None:
        return
    if not database.file.is_file():
        raise InputError(f"there is no {database.shown}: {WHERE_ELSE}", code="database.missing_file")
    if has_foreign_log(database.file):
        log = sidecar(database.file, "-wal")
        raise InputError(
            f"{database.shown}: {log.name} is another file's: put a backup back with `ldpkit restore`, or "
            f"move {log.name} away",
            code="database.foreign_log",
        )


@contextmanager
def opened(url: str, lock_timeout: float) -> Iterator[Database]:
    """Open a database for a command next to the server. Raises InputError for all database errors."""
    database = Database(url, lock_timeout)
    check(database)
    with reporting_errors(database, "; finished work is kept, run it again"):
        yield database


@contextmanager
def reporting_errors(database: Database, advice: str = "") -> Iterator[None]:
    """Turn the database's errors into InputErrors, and close its connections at the end."""
    try:
        yield
    except SQLAlchemyError as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        # PostgreSQL's errors have a code. The driver's have none if it got no answer.
        is_silent = isinstance(error, OperationalError) and getattr(cause, "sqlstate", "") is None
        kind = UnreachedError if is_silent else InputError
        raise kind(f"{database.shown}: {one_line(cause)}{advice}") from error
    except (CommandError, OtherReleaseError) as error:
        # Alembic knows no step from this revision.
        what = f"{database.shown} is not this release's: {one_line(error)}"
        raise InputError(what, code="database.state_invalid") from error
    finally:
        # A connection must not cross the fork that starts a worker.
        database.engine.dispose()


@contextmanager
def _alone(database: Database) -> Iterator[Connection]:
    """Open a connection in one write transaction, unlike any other `make` or `migrate`."""
    with reporting_errors(database), database.writing_connection() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        _require_unicode(database, connection)
        yield connection


def _require_unicode(database: Database, connection: Connection) -> None:
    """Raise InputError for a PostgreSQL database that cannot keep every text, or keeps texts as bytes."""
    if connection.dialect.name != "postgresql":
        return
    encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
    if encoding != "UTF8":
        advice = "make another database, with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        raise InputError(
            f"{database.shown} is in the encoding {encoding}, and has to be in UTF8: {advice}",
            code="database.not_utf8",
        )


def _require_tables(database: Database, connection: Connection) -> None:
    if not inspect(connection).has_table("studies"):
        raise InputError(
            f"{database.shown} has no collector's tables: {WHERE_ELSE}", code="database.no_tables"
        )


def _upgrade(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", "collector:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def postgresql_warnings(database: Database) -> list[str]:
    """Return warnings that PostgreSQL records when reports arrive, or may lose acknowledged ones."""
    with database.read() as session:
        settings = {
            name: value for name, value in session.execute(text("SELECT name, setting FROM pg_settings"))
        }
        has_replica = session.execute(text("SELECT 1 FROM pg_stat_replication")).first() is not None
    lines = [
        f"PostgreSQL has {name} = {settings[name]}: it records when each report came"
        for name, bad in TELLTALE.items()
        if settings.get(name) in bad
    ]
    if has_replica and not settings["synchronous_standby_names"]:
        advice = "see synchronous_standby_names in docs/operate.md"
        lines.append(f"a replica follows PostgreSQL, and may lack the last reports: {advice}")
    return lines
