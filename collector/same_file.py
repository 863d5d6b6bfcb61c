"""Keeps a process on the SQLite file that it opened. It stops if the file is replaced or damaged."""

from __future__ import annotations

import logging
import os
import sqlite3
from pathlib import Path

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import OperationalError

from collector.wal import is_overwritten, mark_of, save_log, take_log

LOGGER = logging.getLogger("collector")
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# The bits of an error code that give its kind; the other bits give details.
KIND = 0xFF


class SameFile:
    """The file that an engine opened first. SQLite would continue to write to a file that has lost its name.

    serves: whether a server opened it, which writes sooner or later.
    """

    def __init__(self, path: Path, serves: bool) -> None:
        self._path = path.absolute()
        self._serves = serves
        self._opened: tuple[int, int] | None = None
        # The mark of its log, while it has a log.
        self._mark: bytes | None = None
        self._is_taken = False
        self._is_damaged = False

    def watch(self, engine: Engine) -> None:
        """Watch an engine's connections and errors."""

        @event.listens_for(engine, "close")
        def spare(_connection: object, _record: object) -> None:
            # The last connection to close writes the log into the file, whatever the file is by then.
            self.save_log()

        @event.listens_for(engine, "engine_disposed")
        def forget(_engine: Engine) -> None:
            # Without connections, others may begin another log.
            self._mark, self._is_taken = None, False

        @event.listens_for(engine, "handle_error")
        def note(context: ExceptionContext) -> None:
            self.note(context.original_exception)

    def require(self) -> None:
        """Raise OperationalError (SQLAlchemy's) if the file was replaced or is damaged."""
        try:
            found = os.stat(self._path)
        except OSError as error:
            raise self._gone(f"is gone ({error.strerror})") from None
        now = (found.st_dev, found.st_ino)
        self._opened = self._opened or now
        if now != self._opened:
            raise self._gone("was replaced")
        if self._is_damaged:
            raise self._gone("is damaged")
        if self.save_log():
            raise self._gone("was overwritten")

    def connect(self, connection: sqlite3.Connection) -> None:
        """Note the file's log, for a new connection. Raises sqlite3.Error."""
        if self._serves:
            self._take_log(connection)
        elif connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
            self._mark = self._mark or mark_of(self._path)

    def take_log_of(self, connection: Connection) -> None:
        """Ensure that writes go through a log of this file. Raises OperationalError (SQLAlchemy's)."""
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        try:
            self._take_log(driver)
        except sqlite3.Error as error:
            raise OperationalError("BEGIN", None, error) from error

    def _take_log(self, connection: sqlite3.Connection) -> None:
        if self._is_taken:
            return
        try:
            take_log(connection, self._path)
        except OSError as error:
            raise sqlite3.OperationalError(f"{self._path}: {error.strerror}") from error
        self._mark, self._is_taken = mark_of(self._path), True

    def save_log(self) -> bool:
        """Return True if the file was overwritten, as with `cp`; then keep the old log out of it."""
        if self._mark is None or not self._path.exists() or not is_overwritten(self._path, self._mark):
            return False
        save_log(self._path)
        return True

    def note(self, error: BaseException | None) -> None:
        """Stop at an error which shows that the file is damaged: new data in it may be lost."""
        code = getattr(error, "sqlite_errorcode", None)
        if code is None or code & KIND not in DAMAGED:
            return
        if self._serves and not self._is_damaged:
            advice = "stop the server, put a backup back with `ldpkit restore`, and start again"
            LOGGER.error("%s is damaged (%s): nothing more is read or stored; %s", self._path, error, advice)
        self._is_damaged = True

    def _gone(self, what: str) -> OperationalError:
        advice = "nothing more is read or stored; repair it and start again"
        cause = sqlite3.OperationalError(f"the file {self._path} {what} under this process: {advice}")
        return OperationalError("BEGIN", None, cause)
