"""The engine, its durability, and sessions that read or write."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Lock, Thread
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session, sessionmaker

from collector.bounding import Room
from collector.storage.same_file import SameFile
from collector.storage.wal import MARK_FILE, beside, has_foreign_log
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.files.disk import write_new

T = TypeVar("T")
WRITES = "ldpkit_writes"
WAL_PAGES = 20_000
SILENCE_SECONDS = 10
OWNER_ONLY = 0o600
# Options of a PostgreSQL URL that no message may show.
SECRETS = ("password", "sslpassword")
# The slowest that a server does: counting many millions of reports for the operator's page.
STATEMENT_SECONDS = 30
# Connections beside those for reading: one writes, one looks whether the database answers.
RESERVED = 2
POSTGRESQL_DISK_FULL = "53100"
# No such table, as while a dump is put back: no server starts on a database without.
POSTGRESQL_NO_TABLE = "42P01"
# Two transactions waited for each other, and PostgreSQL ended this one: a deadlock, or what stands for one.
POSTGRESQL_ENDED = ("40P01", "40001")
MOST_TRIES = 3
SUPPORTED = ("sqlite", "postgresql")


class Bounds(NamedTuple):
    """Limits of one server process. connections: for reading at once. patience: seconds to wait."""

    connections: int
    patience: float


class Database:
    """One database, SQLite or PostgreSQL. Raises InputError when the URL cannot be used.

    busy_timeout: seconds that a write waits for a lock before the request is given up. bounds: a server's;
    a command, whose statements may take as long as they need, has none.
    """

    def __init__(self, url: str, busy_timeout: float, bounds: Bounds | None = None) -> None:
        self.url = _parse_url(url)
        self.busy_timeout = busy_timeout
        self._same = None if self._file is None else SameFile(self._file, bounds is not None)
        self.engine = _create_engine(self.url, busy_timeout, bounds, self._same)
        self._room = None
        if bounds is not None:
            self._room = Room(*bounds, lambda: PoolTimeoutError("every connection for reading is in use"))
        self._readers = sessionmaker(self.engine, expire_on_commit=False)
        self._writers = sessionmaker(self.engine.execution_options(**{WRITES: True}), expire_on_commit=False)
        self._looks = Looks(self._look)
        # What else has to hold while the database answers; raises what is to be said.
        self.require_more: Callable[[Session], None] = lambda _session: None

    @property
    def shown(self) -> str:
        """Where it is, as messages say it: a whole path, or a URL without its password."""
        file = self._file
        open_url = self.url.difference_update_query(SECRETS).render_as_string()
        return f"database {open_url if file is None else file.absolute()}"

    @property
    def _file(self) -> Path | None:
        return _file_of(self.url)

    @property
    def is_there(self) -> bool:
        """Whether there is a file to open without taking in another's log; of PostgreSQL True."""
        return self._file is None or (self._file.is_file() and not has_foreign_log(self._file))

    def require_file(self, advice: str) -> None:
        """Raises InputError where an SQLite file would have to be made, or would take in another's log.

        advice: where else the file may be.
        """
        if self._file is not None and not self._file.is_file():
            raise InputError(f"there is no {self.shown}: {advice}", code="database.missing_file")
        self._refuse_foreign_log()

    def make_file(self) -> None:
        """Make SQLite's file, for its owner alone, unless there is one. Raises InputError."""
        self._refuse_foreign_log()
        if self._file is not None and not self._file.exists():
            write_new(self._file, "", OWNER_ONLY)

    def _refuse_foreign_log(self) -> None:
        if self._file is None or not has_foreign_log(self._file):
            return
        log, mark = beside(self._file, "-wal"), beside(self._file, MARK_FILE)
        raise InputError(
            f"{self.shown}: the log beside it is another file's: stop every server, then put a backup back "
            f"with `ldpkit restore`, or delete {mark.name} if {log.name} is this file's",
            code="database.foreign_log",
        )

    @contextmanager
    def read(self, reserved: bool = False) -> Iterator[Session]:
        """A session in one read transaction.

        reserved: for the one thread that writes, and the one that looks whether the database answers. Raises
        TimeoutError (SQLAlchemy's) where too many others read. No block may open another: it would wait for
        itself.
        """
        room = nullcontext() if reserved or self._room is None else self._room.hold()
        with room, self._noting(), self._readers.begin() as session:
            yield session

    def note(self, error: BaseException | None) -> None:
        """Stop where an error of SQLite, at a connection of one's own, says that the file is damaged."""
        if self._same is not None:
            self._same.note(error)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Rows that are read from the driver itself say alone that they are damaged."""
        try:
            yield
        except DatabaseError as error:
            self.note(error.orig)
            raise

    def require_answer(self, seconds: float) -> None:
        """Raises what the database raises, or SQLAlchemy's TimeoutError where it says nothing for so long."""
        if not self._looks.wait(seconds):
            raise PoolTimeoutError(f"no answer for {seconds:g} s")

    def _look(self) -> None:
        with self.read(reserved=True) as session:
            # A table of ours, so that a wrong database is noticed too.
            session.execute(text("SELECT number FROM studies LIMIT 1")).first()
            self.require_more(session)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session in one write transaction, durable once the block has ended without an error."""
        with self._noting(), self._writers.begin() as session:
            yield session

    def act(self, action: Callable[[Session], T]) -> T:
        """The value of a function of a session, durable on return.

        It is called again where PostgreSQL ended its transaction, of which nothing is left, for another's.
        """
        for _ in range(MOST_TRIES - 1):
            try:
                with self.write() as session:
                    return action(session)
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) not in POSTGRESQL_ENDED:
                    raise
        with self.write() as session:
            return action(session)

    @contextmanager
    def writing_connection(self) -> Iterator[Connection]:
        """A connection in one write transaction, for what is no ordinary work on rows."""
        with self.engine.execution_options(**{WRITES: True}).begin() as connection:
            yield connection


class Looks:
    """Runs `look` in a thread beside: none starts while one is under way, however long that takes."""

    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look
        self._lock = Lock()
        self._latest: Future[None] | None = None

    def wait(self, seconds: float) -> bool:
        """Look, and return whether that ended in time. Raises what it raises."""
        with self._lock:
            if self._latest is None or self._latest.done():
                self._latest = Future()
                Thread(target=self._run, args=(self._latest,), daemon=True).start()
            latest = self._latest
        try:
            latest.result(seconds)
        except FutureTimeout:
            return False
        return True

    def _run(self, result: Future[None]) -> None:
        try:
            self._look()
            result.set_result(None)
        except Exception as error:
            result.set_exception(error)


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite database, None for PostgreSQL. Raises InputError."""
    return _file_of(_parse_url(url))


def is_disk_full(error: SQLAlchemyError) -> bool:
    """Whether the database refused because its disk is full."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    code = getattr(cause, "sqlite_errorcode", None)
    return code == sqlite3.SQLITE_FULL or getattr(cause, "sqlstate", None) == POSTGRESQL_DISK_FULL


def is_without_tables(error: Exception) -> bool:
    """Whether PostgreSQL refused because a table is away; SQLite says so as it says that it is away."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    return getattr(cause, "sqlstate", None) == POSTGRESQL_NO_TABLE


def has_lagging_replica(database: Database) -> bool:
    """Whether a replica follows that commits do not wait for: it may lack what was acknowledged."""
    if database.engine.dialect.name != "postgresql":
        return False
    with database.read() as session:
        waits = session.execute(text("SHOW synchronous_standby_names")).scalar_one() != ""
        follows = session.execute(text("SELECT count(*) FROM pg_stat_replication")).scalar_one() > 0
    database.engine.dispose()
    return follows and not waits


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
            f"setting database: {url.get_backend_name()!r} is not one of {', '.join(SUPPORTED)}",
            code="database.unsupported_kind",
        )
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise UsageError(
            "setting database: SQLite in memory would lose every report; name a file",
            code="database.in_memory",
        )
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


def _create_engine(url: URL, busy_timeout: float, bounds: Bounds | None, same: SameFile | None) -> Engine:
    # hide_parameters: errors are logged.
    options: dict[str, Any] = {"hide_parameters": True, "max_overflow": 0, "pool_size": RESERVED}
    if bounds is not None:
        options["pool_size"] += bounds.connections
        options["pool_timeout"] = bounds.patience
    if url.get_backend_name() == "postgresql":
        options["pool_pre_ping"] = True
        options["connect_args"] = _postgresql_arguments(url, busy_timeout, bounds is not None)
    try:
        engine = create_engine(url, **options)
    except (ImportError, SQLAlchemyError) as error:
        raise InputError(f"setting database: {one_line(error)}", code="database.setting_invalid") from error
    if same is not None:
        _make_durable(engine, busy_timeout, same)
    elif bounds is not None:
        _give_up_on_silence(engine)
    return engine


def _give_up_on_silence(engine: Engine) -> None:
    """End what waits for an answer longer than any statement may take.

    A server that was stopped keeps its connections alive and answers nothing: no timeout of its own, or of
    TCP, ends the wait.
    """
    import psycopg

    class Impatient(psycopg.Connection[Any]):
        def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
            end = time.monotonic() + STATEMENT_SECONDS + SILENCE_SECONDS
            return super().wait(_until(end, gen, self), *arguments, **options)

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: object, _record: object, arguments: Any, parameters: Any) -> Any:
        return Impatient.connect(*arguments, **parameters)


def _until(end: float, waiting: Any, connection: Any) -> Generator[Any, Any, Any]:
    """psycopg's generator, which asks for its socket again and again, until a moment."""
    import psycopg

    try:
        wanted = next(waiting)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > end:
                # Before the error: what follows one would wait for the server again.
                connection.pgconn.finish()
                raise psycopg.OperationalError("the server has gone silent")
            wanted = waiting.send(ready)
    except StopIteration as done:
        return done.value


def _postgresql_arguments(url: URL, busy_timeout: float, serves: bool) -> dict[str, Any]:
    milliseconds = max(1, round(busy_timeout * 1000))
    # Behind the operator's own, which these arguments take the place of.
    settings = f"{url.query.get('options', '')} -c synchronous_commit=on -c lock_timeout={milliseconds}"
    if serves:
        settings += f" -c statement_timeout={STATEMENT_SECONDS}s"
        settings += f" -c idle_in_transaction_session_timeout={STATEMENT_SECONDS}s"
    # A server that has gone silent must not hold the writer for ever.
    silence = {"tcp_user_timeout": SILENCE_SECONDS * 1000, "keepalives_idle": SILENCE_SECONDS}
    # Else what a server in SQL_ASCII sends stays bytes, before anything can be said about it.
    encoding = {"client_encoding": "UTF8"}
    return {"options": settings, "connect_timeout": max(2, round(busy_timeout)), **encoding, **silence}


def _make_durable(engine: Engine, busy_timeout: float, same: SameFile) -> None:
    """Set SQLite's pragmas on each connection, and let SQLAlchemy begin its transactions.

    A command that only reads leaves the file without a log, if it has none.
    """
    pragmas = (
        f"busy_timeout = {round(busy_timeout * 1000)}",
        "synchronous = FULL",
        f"wal_autocheckpoint = {WAL_PAGES}",
        # A withdrawn report's bytes are overwritten, not only forgotten.
        "secure_delete = ON",
        "foreign_keys = ON",
    )

    @event.listens_for(engine, "do_connect")
    def never_make(_dialect: object, _record: object, arguments: list[Any], options: dict[str, Any]) -> None:
        # A file that was moved away must not come back empty.
        if not options.get("uri"):
            arguments[0] = f"{Path(arguments[0]).absolute().as_uri()}?mode=rw"
            options["uri"] = True

    same.watch(engine)

    @event.listens_for(engine, "connect")
    def set_pragmas(connection: Any, _record: object) -> None:
        same.require()
        connection.isolation_level = None
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
        same.connect(connection)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        same.require()
        # A deferred transaction that starts to write after another has written fails at once,
        # without waiting; one that takes the write lock first waits its turn.
        writes = connection.get_execution_options().get(WRITES, False)
        if writes:
            same.take_log_of(connection)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def one_line(error: BaseException | None) -> str:
    """An error's message without line breaks."""
    return " ".join(str(error).split())
