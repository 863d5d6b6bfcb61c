"""The engine, its durability, and sessions that read or write."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from ldp_client.files import write_new
from schemas.errors import InputError

T = TypeVar("T")
WRITES = "ldpkit_writes"
WAL_PAGES = 20_000
SILENCE_SECONDS = 10
OWNER_ONLY = 0o600
# Options of a PostgreSQL URL that no message may show.
SECRETS = ("password", "sslpassword")
POSTGRESQL_DISK_FULL = "53100"
SUPPORTED = ("sqlite", "postgresql")


class Database:
    """One database, SQLite or PostgreSQL. Raises InputError when the URL cannot be used.

    busy_timeout: seconds that a write waits for a lock before the request is given up.
    """

    def __init__(self, url: str, busy_timeout: float) -> None:
        self.url = _parse_url(url)
        self.busy_timeout = busy_timeout
        self.engine = _create_engine(self.url, busy_timeout)
        self._readers = sessionmaker(self.engine, expire_on_commit=False)
        self._writers = sessionmaker(self.engine.execution_options(**{WRITES: True}), expire_on_commit=False)

    @property
    def shown(self) -> str:
        """Where it is, as messages say it: a whole path, or a URL without its password."""
        file = self._file
        open_url = self.url.difference_update_query(SECRETS).render_as_string()
        return f"database {open_url if file is None else file.absolute()}"

    @property
    def _file(self) -> Path | None:
        return Path(str(self.url.database)) if self.url.get_backend_name() == "sqlite" else None

    def require_file(self) -> None:
        """Raises InputError where an SQLite file would have to be made."""
        if self._file is not None and not self._file.is_file():
            wanted = "start in the folder that `ldpkit init` made, or name its --database"
            raise InputError(f"there is no {self.shown}: {wanted}; `ldpkit init` makes a new one")

    def make_file(self) -> None:
        """Make SQLite's file, for its owner alone, unless there is one. Raises InputError."""
        if self._file is not None and not self._file.exists():
            write_new(self._file, "", OWNER_ONLY)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session in one read transaction."""
        with self._readers.begin() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session in one write transaction, durable once the block has ended without an error."""
        with self._writers.begin() as session:
            yield session

    def act(self, action: Callable[[Session], T]) -> T:
        """The value of a function of a session, durable on return."""
        with self.write() as session:
            return action(session)

    @contextmanager
    def writing_connection(self) -> Iterator[Connection]:
        """A connection in one write transaction, for what is no ordinary work on rows."""
        with self.engine.execution_options(**{WRITES: True}).begin() as connection:
            yield connection


@contextmanager
def left_whole(url: str) -> Iterator[None]:
    """When the block is left by this process, SQLite's log goes into its file, which then is all there is.

    Else whoever moved that file alone would leave acknowledged reports behind, and withdrawn ones in the log.
    """
    process = os.getpid()
    try:
        yield
    finally:
        # A worker leaves through here too, while the others still write.
        if os.getpid() == process:
            _empty_log(_parse_url(url))


def _empty_log(url: URL) -> None:
    if url.get_backend_name() != "sqlite" or not Path(str(url.database)).is_file():
        return
    # The last connection that is closed deletes the log; nothing is lost where that fails.
    with suppress(sqlite3.Error), closing(sqlite3.connect(str(url.database))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def is_disk_full(error: SQLAlchemyError) -> bool:
    """Whether the database refused because its disk is full."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    code = getattr(cause, "sqlite_errorcode", None)
    return code == sqlite3.SQLITE_FULL or getattr(cause, "sqlstate", None) == POSTGRESQL_DISK_FULL


def _parse_url(text: str) -> URL:
    try:
        url = make_url(text)
    except ArgumentError:
        raise InputError("setting database: not a database URL, such as sqlite:///ldpkit.sqlite3") from None
    if url.get_backend_name() not in SUPPORTED:
        raise InputError(f"setting database: {url.get_backend_name()!r} is not one of {', '.join(SUPPORTED)}")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise InputError("setting database: SQLite in memory would lose every report; name a file")
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


def _create_engine(url: URL, busy_timeout: float) -> Engine:
    # pool_size 0: as many connections as server threads. hide_parameters: errors are logged.
    options: dict[str, Any] = {"pool_size": 0, "hide_parameters": True}
    if url.get_backend_name() == "postgresql":
        options["pool_pre_ping"] = True
        options["connect_args"] = _postgresql_arguments(url, busy_timeout)
    try:
        engine = create_engine(url, **options)
    except (ImportError, SQLAlchemyError) as error:
        raise InputError(f"setting database: {one_line(error)}") from error
    if engine.dialect.name == "sqlite":
        _make_durable(engine, busy_timeout)
    return engine


def _postgresql_arguments(url: URL, busy_timeout: float) -> dict[str, Any]:
    milliseconds = max(1, round(busy_timeout * 1000))
    # Behind the operator's own, which these arguments take the place of.
    settings = f"{url.query.get('options', '')} -c synchronous_commit=on -c lock_timeout={milliseconds}"
    # A server that has gone silent must not hold the writer for ever.
    silence = {"tcp_user_timeout": SILENCE_SECONDS * 1000, "keepalives_idle": SILENCE_SECONDS}
    return {"options": settings, "connect_timeout": max(2, round(busy_timeout)), **silence}


def _make_durable(engine: Engine, busy_timeout: float) -> None:
    """Set SQLite's pragmas on each connection, and let SQLAlchemy begin its transactions."""
    pragmas = (
        f"busy_timeout = {round(busy_timeout * 1000)}",
        "journal_mode = WAL",
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

    @event.listens_for(engine, "connect")
    def set_pragmas(connection: Any, _record: object) -> None:
        connection.isolation_level = None
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A deferred transaction that starts to write after another has written fails at once,
        # without waiting; one that takes the write lock first waits its turn.
        writes = connection.get_execution_options().get(WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def one_line(error: BaseException | None) -> str:
    """An error's message without line breaks."""
    return " ".join(str(error).split())
