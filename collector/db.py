"""The database: its engine, its durability, and sessions that read or write."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, cast

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, make_url, text
from sqlalchemy.orm import Session, sessionmaker

from collector.errors import code_of, one_line
from collector.limiter import Limiter
from collector.wal import has_foreign_log, mark_of, set_log_aside
from ldp_client.documents.errors import InputError, UsageError

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
# PostgreSQL ended this transaction because of a deadlock, or a serialization failure.
POSTGRESQL_ENDED = ("40P01", "40001")
MOST_TRIES = 3
SUPPORTED = ("sqlite", "postgresql")
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# The numbers of no file.
DAMAGED_FILE = (-1, -1, -1)


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
            self._room = Limiter(READERS, patience, lambda: exc.TimeoutError(in_use))
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
        raise exc.OperationalError("BEGIN", None, cause)

    def note(self, error: BaseException | None) -> None:
        """Stop if an SQLite error shows that the file is damaged: new data in it may be lost."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED:
            self._opened = DAMAGED_FILE

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except exc.DatabaseError as error:
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
            raise exc.TimeoutError(f"no answer for {seconds:g} s")
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
            except exc.DBAPIError as error:
                if code_of(error) not in POSTGRESQL_ENDED or tries == MOST_TRIES:
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
        hidden = exc.DBAPIError.instance(
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


def _file_of(url: URL) -> Path | None:
    return Path(str(url.database)) if url.get_backend_name() == "sqlite" else None


def _parse_url(text: str) -> URL:
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):
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
        milliseconds = max(1, round(lock_timeout * 1000))
        # Append to the operator's options, which these arguments replace.
        settings = f"{url.query.get('options', '')} -c synchronous_commit=on -c lock_timeout={milliseconds}"
        if patience is not None:
            settings += f" -c statement_timeout={STATEMENT_SECONDS}s"
            settings += f" -c idle_in_transaction_session_timeout={STATEMENT_SECONDS}s"
        options["connect_args"] = {
            "options": settings,
            "connect_timeout": max(2, round(lock_timeout)),
            # Otherwise texts from a server in SQL_ASCII stay bytes, before any check can report it.
            "client_encoding": "UTF8",
            # A machine that went away must not block the writer forever.
            "tcp_user_timeout": SILENCE_SECONDS * 1000,
            "keepalives_idle": SILENCE_SECONDS,
        }
    file = _file_of(url)
    if file is not None:
        # A file that was moved away must not come back empty.
        url = URL.create("sqlite", database=file.absolute().as_uri(), query={"mode": "rw", "uri": "true"})
    try:
        engine = create_engine(url, **options)
    except (ImportError, exc.SQLAlchemyError) as error:
        raise InputError(f"setting database: {one_line(error)}", code="database.setting_invalid") from error
    return engine
