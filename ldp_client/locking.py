"""A lock between the processes that share a device's folder, and a mark that outlives them.

SQLite's own file lock: it works wherever the ledger does, and ends with the process that holds it.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from schemas.errors import LedgerError

FILE_NAME = "lock.sqlite3"


class BusyError(LedgerError):
    """Another process holds the lock."""


@contextmanager
def locked(folder: str, seconds: float) -> "Iterator[sqlite3.Connection]":
    """Hold the folder's lock, after waiting for at most so long. Raises BusyError, LedgerError."""
    path = os.path.join(folder, FILE_NAME)
    connection = None
    try:
        connection = sqlite3.connect(path, timeout=seconds, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        kind = BusyError if "locked" in str(error) else LedgerError
        raise kind(f"the lock {path} cannot be taken: {error}") from None
    try:
        yield connection
    finally:
        connection.close()


def is_marked(lock: sqlite3.Connection) -> bool:
    """Whether `mark` was ever called in this folder."""
    return bool(lock.execute("PRAGMA user_version").fetchone()[0])


def mark(lock: sqlite3.Connection) -> None:
    """Leave the mark, durably. Ends the lock's transaction."""
    if not is_marked(lock):
        lock.execute("PRAGMA user_version = 1")
    lock.execute("COMMIT")
