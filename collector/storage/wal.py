"""SQLite's write-ahead log: folded into its file when a server stops, and never into another's."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

LOGGER = logging.getLogger("collector")
# Where an SQLite file says how it is written and read, and what one says that has a log.
MODE_AT, WITH_LOG = 18, b"\2\2"
# How long a server that stops waits for somebody who reads the file, twice.
BUSY_SECONDS = 2.0
# The byte of the index beside a log that every connection holds a shared lock on.
USERS_AT = 128
# Kept open: closing any handle of a file drops the locks that SQLite holds on it in this process.
_looked_at: dict[tuple[int, int], int] = {}


@contextmanager
def folding_wal(file: Path | None) -> Iterator[None]:
    """Fold SQLite's log into its file on exit, so that copying one file loses nothing.

    Else whoever moved that file alone would leave acknowledged reports behind, and withdrawn ones in the log.
    Where another file has taken its place meanwhile, such as a backup, the log is put aside instead.
    file: None for a database that is no file.
    """
    process, served = os.getpid(), _identity(file)
    try:
        yield
    finally:
        # A worker leaves through here too, while the others still write.
        if file is not None and served is not None and os.getpid() == process:
            _fold(file, served)


def has_foreign_log(file: Path) -> bool:
    """Whether the log beside an SQLite file is another file's: this one, such as a backup, never had one.

    SQLite itself does not look, and would write the log's pages into the file.
    """
    log = _beside(file, "-wal")
    # The log first: a file says that it has one before that is made, and until it is deleted.
    return _size(log) > 0 and _mode(file) != WITH_LOG and _size(log) > 0


def is_overwritten(file: Path) -> bool:
    """Whether other content was written into a file that has a log, such as a backup with `cp`."""
    return _mode(file) != WITH_LOG


def save_log(file: Path) -> None:
    """Keep a copy of the log of a file that was overwritten, and empty it.

    SQLite writes the log's pages into whatever the file is by then as soon as its last connection is closed.
    """
    log = _beside(file, "-wal")
    if not _size(log):
        return
    aside = _name_aside(file)
    try:
        shutil.copyfile(log, aside)
        os.truncate(log, 0)
    except OSError as error:
        LOGGER.error("%s was overwritten while it was served; its log stays: %s", file, error.strerror)
    else:
        LOGGER.error("%s was overwritten while it was served; its log is now %s", file, aside)


def _name_aside(file: Path) -> Path:
    names = (_beside(file, f"-wal.replaced-{number}") for number in count(1))
    return next(name for name in names if not name.exists())


def _fold(file: Path, served: tuple[int, int]) -> None:
    now = _identity(file)
    if now is None:
        LOGGER.error("%s is gone; its log stays where it is", file)
    elif has_foreign_log(file) or (now != served and not _is_used(file)):
        _put_aside(file)
    elif now == served:
        _empty(file)


def _empty(file: Path) -> None:
    """Write the log's pages into the file; the last connection that is closed deletes the log then.

    Waits for others twice as long as a connection waits for a lock; what stays in the log is said.
    """
    try:
        with closing(sqlite3.connect(file, BUSY_SECONDS)) as connection:
            for _ in range(2):
                (busy, _frames, _moved) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:
                    return
        why = "somebody still reads it"
    except sqlite3.Error as error:
        why = str(error)
    LOGGER.error(
        "%s keeps what was stored last in its log, as %s: copy both, never the file alone", file, why
    )


def _put_aside(file: Path) -> None:
    """Give the log of a file that was replaced another name, so that nothing takes it in."""
    log = _beside(file, "-wal")
    if not _size(log):
        return
    aside = _name_aside(file)
    log.rename(aside)
    _beside(file, "-shm").unlink(missing_ok=True)
    advice = "with the replaced file it reads what was stored last, delete it where that is not wanted"
    LOGGER.error(
        "%s was replaced while it was served; the replaced file's log is now %s: %s", file, aside, advice
    )


def _is_used(file: Path) -> bool:
    """Whether another process has the database open by this name."""
    try:
        with _beside(file, "-shm").open("r+b") as index:
            fcntl.lockf(index, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, USERS_AT)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _mode(file: Path) -> bytes:
    identity = _identity(file)
    if identity is None:
        return b""
    if identity not in _looked_at:
        _looked_at[identity] = os.open(file, os.O_RDONLY)
    return os.pread(_looked_at[identity], len(WITH_LOG), MODE_AT)


def _identity(file: Path | None) -> tuple[int, int] | None:
    try:
        found = None if file is None else os.stat(file)
    except OSError:
        return None
    return found and (found.st_dev, found.st_ino)


def _beside(file: Path, ending: str) -> Path:
    # SQLite follows links too.
    whole = file.resolve()
    return whole.with_name(whole.name + ending)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
