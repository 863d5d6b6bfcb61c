"""The engine, its durability, sessions that read or write, and problems for the database's errors."""

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import singledispatch
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, cast

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    DBAPIError,
    IntegrityError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session, sessionmaker

from collector.limiter import Limiter, log_throttled
from collector.problems import (
    DISK_FULL,
    INTERNAL,
    REPORT_INVALID,
    STATEMENT_INVALID,
    STUDY_INVALID,
    UNAVAILABLE,
    ProblemError,
)
from collector.wal import has_foreign_log, mark_of, set_log_aside
from ldp_client.documents.errors import (
    DocumentError,
    InputError,
    ReportError,
    StatementError,
    StudyError,
    UsageError,
)

T = TypeVar("T")
WRITES = "ldpkit_writes"
WAL_PAGES = 20_000
SILENCE_SECONDS = 10
OWNER_ONLY = 0o600
# Options of a PostgreSQL URL that no message may show.
SECRETS = ("password", "sslpassword")
# The server's slowest statement counts many millions of reports for the operator's page.
STATEMENT_SECONDS = 30
# Connections with which a server reads, and more: for writing, and for checking that the database answers.
READERS = 4
RESERVED = 2
LOCK_NOT_AVAILABLE = "55P03"
DISK_FULL_CODES = (sqlite3.SQLITE_FULL, "53100")
# No such table, as during a restore: no server starts on a database without tables.
POSTGRESQL_NO_TABLE = "42P01"
# PostgreSQL ended this transaction because of a deadlock, or a serialization failure.
POSTGRESQL_ENDED = ("40P01", "40001")
MOST_TRIES = 3
# PostgreSQL settings, and values that make the server record when reports arrive.
TELLTALE = {
    "log_statement": ("mod", "all"),
    "log_min_duration_statement": ("0",),
    "log_min_duration_sample": ("0",),
    "track_commit_timestamp": ("on",),
}
SUPPORTED = ("sqlite", "postgresql")
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# The numbers of no file.
DAMAGED_FILE = (-1, -1, -1)


class OtherReleaseError(Exception):
    """The database belongs to another release now: this release would count new reports wrongly."""

    detail = "the database is another release's; nothing was stored"


class PartlyHeldError(Exception):
    """Some of the reports to insert were held before; the transaction must be rolled back."""


class WrongSumsError(Exception):
    """The kept sums have the wrong length for their version: the database is damaged."""

    detail = "the running summary is damaged; the server's log has what to do"


class Database:
    """One database, SQLite or PostgreSQL. Raises InputError when the URL cannot be used.

    lock_timeout: seconds that a write waits for a lock before the request fails. patience: seconds that a
    server's request waits for a connection. A command has none: its statements may take as long as they need.
    """

    def __init__(self, url: str, lock_timeout: float, patience: float | None = None) -> None:
        self.url = _parse_url(url)
        self.lock_timeout = lock_timeout
        self.engine = _create_engine(self.url, lock_timeout, patience)
        self.serves = patience is not None
        # The file that was opened first: its numbers and its mark.
        self._opened: tuple[int, int, int] | None = None
        if self.file is not None:
            self._set_up_sqlite(self.file)
        self._room = None
        if patience is not None:
            in_use = "every connection for reading is in use"
            self._room = Limiter(READERS, patience, lambda: PoolTimeoutError(in_use))
        self._readers = sessionmaker(self.engine, expire_on_commit=False)
        self._writers = sessionmaker(self.engine.execution_options(**{WRITES: True}), expire_on_commit=False)
        self._looking = Lock()
        # A further condition while the database answers; raises an error if it fails.
        self.require_more: Callable[[Session], None] = lambda _session: None

    @property
    def shown(self) -> str:
        """Return the database's location for messages: a full path, or a URL without its password."""
        file = self.file
        open_url = self.url.difference_update_query(SECRETS).render_as_string()
        return f"database {open_url if file is None else file.absolute()}"

    @property
    def file(self) -> Path | None:
        """The file of SQLite, None for PostgreSQL."""
        return _file_of(self.url)

    def _set_up_sqlite(self, file: Path) -> None:
        """Set pragmas on each connection, and let SQLAlchemy begin its transactions.

        SQLite would continue to write to a file that has lost its name, or with another file's log. So each
        transaction requires the file that was opened first.
        """
        pragmas = [
            f"busy_timeout = {round(self.lock_timeout * 1000)}",
            "synchronous = FULL",
            f"wal_autocheckpoint = {WAL_PAGES}",
            # A withdrawn report's bytes are overwritten, not only forgotten.
            "secure_delete = ON",
            "foreign_keys = ON",
        ]
        if self.serves:
            pragmas.append("journal_mode = WAL")

        @event.listens_for(self.engine, "connect")
        def set_pragmas(connection: Any, _record: object) -> None:
            self._require_same(file)
            connection.isolation_level = None
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}")

        @event.listens_for(self.engine, "begin")
        def begin(connection: Connection) -> None:
            self._require_same(file)
            # A deferred transaction that starts to write after another has written fails at once,
            # without waiting. An immediate transaction takes the write lock first and waits its turn.
            writes = connection.get_execution_options().get(WRITES, False)
            with sqlite_driver(connection) as driver:
                driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN")

        @event.listens_for(self.engine, "engine_disposed")
        def forget(_engine: Engine) -> None:
            # Without connections, another process may draw another mark.
            self._opened = None

    def _require_same(self, file: Path) -> None:
        """Raise OperationalError (SQLAlchemy's) if another file has replaced the opened file."""
        now = mark_of(file)
        if now and not self.serves:
            # A server may start next to a command, and draw another mark.
            now = (*now[:2], 0)
        if self._opened is None and not has_foreign_log(file):
            self._opened = now
        if now is not None and now == self._opened:
            return
        if now and self._opened and now[:2] == self._opened[:2] and has_foreign_log(file):
            # Overwritten, as by `cp`: the last connection to close would write the log into it.
            set_log_aside(file)
        advice = "stop the server, and put it or a backup back (`ldpkit restore`)"
        cause = sqlite3.OperationalError(f"the file {file} was replaced or is damaged: {advice}")
        raise OperationalError("BEGIN", None, cause)

    def note(self, error: BaseException | None) -> None:
        """Stop if an SQLite error shows that the file is damaged: new data in it may be lost."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED:
            self._opened = DAMAGED_FILE

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except DatabaseError as error:
            self.note(error.orig)
            raise

    @contextmanager
    def read(self, reserved: bool = False) -> Iterator[Session]:
        """Open a session in one read transaction.

        reserved: for the writing thread, and the thread that checks that the database answers. Raises
        TimeoutError (SQLAlchemy's) if too many others read. A block must not open another session: it would
        wait for itself.
        """
        room = nullcontext() if reserved or self._room is None else self._room.hold()
        with room, self._noting(), self._readers.begin() as session:
            yield session

    def require_answer(self, seconds: float) -> None:
        """Raise the database's errors, or SQLAlchemy's TimeoutError while another thread waits for it."""
        if not self._looking.acquire(timeout=seconds):
            raise PoolTimeoutError(f"no answer for {seconds:g} s")
        try:
            with self.read(reserved=True) as session:
                # A table of ours, so that a wrong database is noticed too.
                session.execute(text("SELECT number FROM studies LIMIT 1")).first()
                self.require_more(session)
        finally:
            self._looking.release()

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open a session in one write transaction, durable once the block has ended without an error."""
        with self._noting(), self._writers.begin() as session:
            yield session

    def act(self, action: Callable[[Session], T]) -> T:
        """Return the value of a function of a session, durable on return.

        The function is called again if PostgreSQL rolled back its transaction in favour of another.
        """
        for tries in range(1, MOST_TRIES + 1):
            try:
                with self.write() as session:
                    return action(session)
            except DBAPIError as error:
                if _code_of(error) not in POSTGRESQL_ENDED or tries == MOST_TRIES:
                    raise
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def writing_connection(self) -> Iterator[Connection]:
        """Open a connection in one write transaction, for unusual work, such as migrations."""
        with self.engine.execution_options(**{WRITES: True}).begin() as connection:
            yield connection


@contextmanager
def sqlite_driver(connection: Connection) -> Iterator[sqlite3.Connection]:
    """Yield SQLite's own connection: SQLAlchemy spends ten times as much on a statement. Errors are alike."""
    try:
        yield cast(sqlite3.Connection, connection.connection.driver_connection)
    except sqlite3.Error as error:
        hidden = DBAPIError.instance(
            None, None, error, sqlite3.Error, hide_parameters=True, dialect=connection.dialect
        )
        raise hidden from error


def sqlite_file(url: str) -> Path | None:
    """Return the file of an SQLite database, None for PostgreSQL. Raises InputError."""
    return _file_of(_parse_url(url))


def sqlite_url(file: Path) -> str:
    """Return the URL of an SQLite file. Raises InputError if no URL can name it."""
    if set("?%") & set(str(file)):
        raise InputError(
            f"{file}: no database URL can name it: choose a folder without '?' and '%'",
            code="database.path_not_in_url",
        )
    return f"sqlite:///{file}"


def _code_of(error: Exception) -> str | int | None:
    """Return PostgreSQL's or SQLite's code of an error, None for other errors."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    return getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorcode", None)


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


def _file_of(url: URL) -> Path | None:
    return Path(str(url.database)) if url.get_backend_name() == "sqlite" else None


def _parse_url(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise UsageError(
            "setting database: not a database URL, such as sqlite:///ldpkit.sqlite3", code="database.not_url"
        ) from None
    if url.get_backend_name() not in SUPPORTED:
        raise UsageError(
            f"setting database: {url.get_backend_name()!r} is not supported: use {', '.join(SUPPORTED)}",
            code="database.unsupported_kind",
        )
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise UsageError(
            "setting database: SQLite in memory would lose every report; name a file",
            code="database.in_memory",
        )
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


def _create_engine(url: URL, lock_timeout: float, patience: float | None) -> Engine:
    # hide_parameters: errors are logged.
    options: dict[str, Any] = {"hide_parameters": True, "max_overflow": 0, "pool_size": RESERVED}
    # So the writer mostly gets its last connection, which has the table's pages in memory.
    options["pool_use_lifo"] = True
    if patience is not None:
        options["pool_size"] += READERS
        options["pool_timeout"] = patience
    if url.get_backend_name() == "postgresql":
        options["pool_pre_ping"] = True
        options["connect_args"] = _postgresql_arguments(url, lock_timeout, patience is not None)
    file = _file_of(url)
    if file is not None:
        # A file that was moved away must not come back empty.
        url = URL.create("sqlite", database=file.absolute().as_uri(), query={"mode": "rw", "uri": "true"})
    try:
        engine = create_engine(url, **options)
    except (ImportError, SQLAlchemyError) as error:
        raise InputError(f"setting database: {one_line(error)}", code="database.setting_invalid") from error
    return engine


def _postgresql_arguments(url: URL, lock_timeout: float, serves: bool) -> dict[str, Any]:
    milliseconds = max(1, round(lock_timeout * 1000))
    # Append to the operator's options, which these arguments replace.
    settings = f"{url.query.get('options', '')} -c synchronous_commit=on -c lock_timeout={milliseconds}"
    if serves:
        settings += f" -c statement_timeout={STATEMENT_SECONDS}s"
        settings += f" -c idle_in_transaction_session_timeout={STATEMENT_SECONDS}s"
    # A machine that went away must not block the writer forever.
    silence = {"tcp_user_timeout": SILENCE_SECONDS * 1000, "keepalives_idle": SILENCE_SECONDS}
    # Otherwise texts from a server in SQL_ASCII stay bytes, before any check can report it.
    encoding = {"client_encoding": "UTF8"}
    return {"options": settings, "connect_timeout": max(2, round(lock_timeout)), **encoding, **silence}


def one_line(error: BaseException | None) -> str:
    """Return an error's message without line breaks."""
    return " ".join(str(error).split())


# Errors of a statement or its values. All others are errors of the database itself.
OF_A_STATEMENT = (DataError, IntegrityError, NotSupportedError, ProgrammingError)


def is_of_all(error: Exception) -> bool:
    """Return True if every other write would fail now too: the database is locked, full or away."""
    of_database = isinstance(error, SQLAlchemyError) and not isinstance(error, OF_A_STATEMENT)
    return of_database or _code_of(error) == POSTGRESQL_NO_TABLE or isinstance(error, OtherReleaseError)


KIND_OF_DOCUMENT = {
    StudyError: STUDY_INVALID,
    ReportError: REPORT_INVALID,
    StatementError: STATEMENT_INVALID,
}


@singledispatch
def problem_of(error: Exception) -> ProblemError:
    """Return the problem for an exception."""
    # Log neither path nor body: a log line with a report would give it a time.
    log_throttled(logging.ERROR, "a request failed", error)
    return ProblemError(INTERNAL, "an error that is not the sender's; the server's log has it")


@problem_of.register
def _(error: ProblemError) -> ProblemError:
    return error


@problem_of.register(StudyError)
@problem_of.register(ReportError)
@problem_of.register(StatementError)
def _(error: DocumentError) -> ProblemError:
    return ProblemError(KIND_OF_DOCUMENT[type(error)], error.problem, error.field)


@problem_of.register(PoolTimeoutError)
@problem_of.register(DBAPIError)
def _(error: SQLAlchemyError) -> ProblemError:
    if not is_of_all(error):
        return problem_of.dispatch(Exception)(error)
    if _code_of(error) in DISK_FULL_CODES:
        log_throttled(logging.ERROR, "the database's disk is full: nothing more is stored")
        return ProblemError(DISK_FULL, "nothing was stored")
    line = f"the database cannot be used: {one_line(getattr(error, 'orig', error))}"
    log_throttled(logging.WARNING, line)
    return ProblemError(UNAVAILABLE, "the database is locked or away; nothing was stored")


@problem_of.register(OtherReleaseError)
@problem_of.register(WrongSumsError)
def _(error: OtherReleaseError | WrongSumsError) -> ProblemError:
    log_throttled(logging.ERROR, str(error))
    return ProblemError(UNAVAILABLE, error.detail)
