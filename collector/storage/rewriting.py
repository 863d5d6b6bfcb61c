"""Writing a database's files anew, so that nothing is left of rows that were moved, changed or deleted.

A database forgets a row long before it overwrites it. SQLite's log has every change since it was last
emptied; a page of PostgreSQL keeps the bytes of rows that VACUUM has freed, each with the number of the
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

# For transactions that began before the rows were moved to end; those of a server take milliseconds.
WAIT_SECONDS = 2.0
TRY_SECONDS = 0.1
# While a table's new file waits for a reader of the old one, everybody behind waits too.
LOCK_MILLISECONDS = 500
LOCK_NOT_AVAILABLE = "55P03"
# Of an SQLite error's code: its kind; and the kinds of a file that cannot be made or written, or has no room.
KIND, OF_FILES = 0xFF, (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
STILL_READ = "another program, such as a backup, reads the database as it was; let it end"
NOT_OURS = "this role may not vacuum every table; tables have to belong to it"


class UnfinishedError(LdpkitError):
    """What was moved or deleted can still be read in the database's files."""

    code = "database.order_in_files"

    def __init__(self, why: str) -> None:
        super().__init__(f"the files still have the order in which reports came: {why}")
        self.why = why


def _tables(connection: Connection) -> list[str]:
    """Every table that has a file. Each study's reports have their own, and the time of one statement."""
    whole = [name for name in Base.metadata.tables if name != PARENT]
    return [*whole, *partition_names(connection)]


def rewrite_files(
    database: Database,
    probe: tuple[str, str] = (UpkeepRow.__tablename__, "day"),
    tables: Callable[[Connection], Sequence[str]] = _tables,
) -> None:
    """Write the files anew, without what was moved, changed or deleted up to now.

    probe: a small table of PostgreSQL, and one of its columns. tables: which of its tables; SQLite has one
    file.
    Raises UnfinishedError where somebody keeps it from being forgotten or the files from being written, and
    SQLAlchemyError.
    """
    if database.engine.dialect.name == "postgresql":
        with database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            _rewrite_tables(connection, probe, tables(connection))
        return
    # A connection of its own: the engine's begin transactions, in which this is impossible.
    # The file itself, not a link to it: SQLite writes the new one's pages beside that.
    file = Path(str(database.url.database)).resolve()
    try:
        with closing(
            sqlite3.connect(f"{file.as_uri()}?mode=rw", database.busy_timeout, uri=True)
        ) as connection:
            _write_file(connection, file)
    except (sqlite3.Error, OSError) as error:
        database.note(error)
        raise UnfinishedError(one_line(error)) from error


def _write_file(connection: sqlite3.Connection, file: Path) -> None:
    """SQLite's file, written anew. Raises UnfinishedError where there is no room."""
    try:
        # Else pages that wait in the log would take room beside those that are written now; readers may stay.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        connection.execute("VACUUM")
    except sqlite3.Error as error:
        # Uploads need the room that a new file, half written, takes in the log.
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
    """Each try waits for readers as long as a write would for a lock."""
    for _ in range(2):
        (busy, _frames, _moved) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            return
    raise UnfinishedError(STILL_READ)


def _rewrite_tables(connection: Connection, probe: tuple[str, str], tables: Sequence[str]) -> None:
    """New files, once no transaction sees what the moved rows were before; else they would be copied."""
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
    """Raises UnfinishedError where a transaction still sees rows that were moved before now."""
    # One more old row, of a small table: when that can be forgotten, so can all that are older.
    connection.exec_driver_sql(f"UPDATE {probe} SET {column} = {column}")
    last = time.monotonic() + WAIT_SECONDS
    while _rewrite_table(connection, probe):
        if time.monotonic() > last:
            raise UnfinishedError(STILL_READ)
        time.sleep(TRY_SECONDS)


def _rewrite_table(connection: Connection, name: str) -> int:
    """How many deleted rows were copied, since some transaction still sees them."""
    kept: list[int] = []

    def hear(said: Diagnostic) -> None:
        # In any language the number of dead rows that could not be removed comes first.
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
        # PostgreSQL only warns, and goes on.
        raise UnfinishedError(NOT_OURS)
    return sum(kept)
