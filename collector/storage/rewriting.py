"""Rewriting a database's files, so that nothing is left of rows that were moved, changed or deleted.

A database forgets a row long before it overwrites it. SQLite's log has every change since it was last
emptied. A page of PostgreSQL keeps the bytes of rows that VACUUM has freed, each with the number of the
transaction that wrote it.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from collector.storage.database import Database, one_line
from collector.storage.models import Base, UpkeepRow
from collector.storage.partitions import PARENT, partition_names
from ldp_client.documents.errors import LdpkitError

if TYPE_CHECKING:
    from psycopg.errors import Diagnostic

# Time for transactions that began before the rows were moved; a server's take milliseconds.
WAIT_SECONDS = 2.0
TRY_SECONDS = 0.1
# While a table's new file waits for a reader of the old one, all later requests wait too.
LOCK_MILLISECONDS = 500
LOCK_NOT_AVAILABLE = "55P03"
# The kind in an SQLite error code, and the kinds for files that cannot be made or written, or have no room.
KIND, OF_FILES = 0xFF, (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
STILL_READ = "another program, such as a backup, still reads old rows; wait for it to end"
NOT_OURS = "this role may not vacuum every table; tables have to belong to it"


class UnfinishedError(LdpkitError):
    """Moved or deleted rows can still be read in the database's files."""

    code = "database.order_in_files"

    def __init__(self, why: str) -> None:
        super().__init__(f"the files still have the order in which reports came: {why}")
        self.why = why


def _tables(connection: Connection) -> list[str]:
    """Return every table that has a file. Each study's reports have their own file and statement."""
    whole = [name for name in Base.metadata.tables if name != PARENT]
    return [*whole, *partition_names(connection)]


def rewrite_files(
    database: Database,
    probe: tuple[str, str] = (UpkeepRow.__tablename__, "day"),
    tables: Callable[[Connection], Sequence[str]] = _tables,
) -> None:
    """Rewrite the files, without any rows that were moved, changed or deleted up to now.

    probe: a small PostgreSQL table, and its column to update. tables: the tables to rewrite; SQLite has one
    file.
    Raises UnfinishedError if a reader keeps the old rows visible or the files cannot be written, and
    SQLAlchemyError.
    """
    if database.engine.dialect.name == "postgresql":
        with database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            _rewrite_tables(connection, probe, tables(connection))
        return
    # A separate connection: the engine's connections begin transactions, which rule out VACUUM.
    # The target of a link: SQLite writes the new file's pages next to it.
    file = Path(str(database.url.database)).resolve()
    try:
        with closing(
            sqlite3.connect(f"{file.as_uri()}?mode=rw", database.lock_timeout, uri=True)
        ) as connection:
            _write_file(connection, file)
    except (sqlite3.Error, OSError) as error:
        database.note(error)
        raise UnfinishedError(one_line(error)) from error


def _write_file(connection: sqlite3.Connection, file: Path) -> None:
    """Rewrite SQLite's file. Raises UnfinishedError if there is no room."""
    try:
        # Otherwise pages in the log would take room in addition to the new pages; readers may stay.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        connection.execute("VACUUM")
    except sqlite3.Error as error:
        # Uploads need the room that a new, half-written file takes in the log.
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if getattr(error, "sqlite_errorcode", 0) & KIND in OF_FILES:
            advice = (
                f"make room in {file.parent} and in its temporary folder, or name another as SQLITE_TMPDIR"
            )
            raise UnfinishedError(f"SQLite cannot write its new file ({error}): {advice}") from error
        raise
    _empty_log(connection)


def _empty_log(connection: sqlite3.Connection) -> None:
    """Empty the log. Each try waits for readers as long as a write would for a lock."""
    for _ in range(2):
        (busy, _frames, _moved) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            return
    raise UnfinishedError(STILL_READ)


def _rewrite_tables(connection: Connection, probe: tuple[str, str], tables: Sequence[str]) -> None:
    """Rewrite the tables once no transaction sees the moved rows' old versions, which would be copied."""
    connection.exec_driver_sql(f"SET lock_timeout = {LOCK_MILLISECONDS}")
    try:
        _wait_for_readers(connection, *probe)
        for name in tables:
            _rewrite_table(connection, name)
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) == LOCK_NOT_AVAILABLE:
            raise UnfinishedError(STILL_READ) from error
        raise
    finally:
        if not connection.invalidated:
            connection.exec_driver_sql("RESET lock_timeout")


def _wait_for_readers(connection: Connection, probe: str, column: str) -> None:
    """Raise UnfinishedError if a transaction still sees rows that were moved before now."""
    # Make one more old row, in a small table: once it can be removed, so can all older rows.
    connection.exec_driver_sql(f"UPDATE {probe} SET {column} = {column}")
    last = time.monotonic() + WAIT_SECONDS
    while _rewrite_table(connection, probe):
        if time.monotonic() > last:
            raise UnfinishedError(STILL_READ)
        time.sleep(TRY_SECONDS)


def _rewrite_table(connection: Connection, name: str) -> int:
    """Rewrite a table. Return how many deleted rows were copied because a transaction still sees them."""
    kept: list[int] = []

    def hear(said: Diagnostic) -> None:
        # In every language, the number of dead rows that could not be removed comes first.
        if number := re.search(r"\d+", said.message_detail or ""):
            kept.append(int(number[0]))

    driver = connection.connection.driver_connection
    assert driver is not None
    driver.add_notice_handler(hear)
    try:
        connection.exec_driver_sql(f"VACUUM (FULL, VERBOSE) {name}")
    finally:
        driver.remove_notice_handler(hear)
    if not kept:
        # PostgreSQL only warns, and continues.
        raise UnfinishedError(NOT_OURS)
    return sum(kept)
