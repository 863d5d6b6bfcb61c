"""An SQLite file's lock, and its write-ahead log, which never enters another file.

SQLite finds a log by its name alone, and would write the pages of any log into the file. So each start of a
server draws a random mark. It is in the file's header (`user_version`), and in FILE-mark next to it. A file
with another mark, such as a backup, is not the file of the log. Nor is a copy of the file with the same mark:
FILE-mark also has the file's inode number.
"""

import fcntl
import logging
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import FileIO
from itertools import count
from pathlib import Path

from ldp_client.documents.errors import InputError

LOGGER = logging.getLogger("collector")
# Offset and size of `user_version` in a file's header, a signed number. A backup has 0: it has no log.
MARK_AT, MARK_BYTES, MARKS = 60, 4, 2**31
IS_OURS = "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'"
# How long a stopping server waits for readers of the file.
BUSY_SECONDS = 4.0
IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
# Kept open: closing any handle of a file drops the locks that SQLite holds on it in this process.
_handles: dict[tuple[int, int], int] = {}


@contextmanager
def served_alone(file: Path | None) -> Iterator[None]:
    """Hold a database for one server; on exit, write SQLite's log into its file.

    Otherwise an operator who moves only that file would lose acknowledged reports, and leave withdrawn
    reports in the log. A log that was another file's from the start stays: the server does not start.
    file: None for a database that is no file. A missing file is rejected elsewhere.
    Raises InputError if another server holds it.
    """
    if file is None or not file.exists():
        yield
        return
    with locked(file):
        was_foreign = has_foreign_log(file)
        if not was_foreign:
            # Before there are workers: each would refuse a mark that another draws.
            bind_next_log(file)
        try:
            yield
        finally:
            if not was_foreign and (why := empty_log(file)):
                LOGGER.error("%s was not written into its file: %s", sidecar(file, "-wal"), why)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep servers away from an SQLite file. Raises InputError if a server works on it."""
    try:
        lock = FileIO(file)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"a server works on database {file}: stop that one first", code="database.served_already"
        ) from None
    except OSError as error:
        raise InputError(f"cannot lock {file}: {error.strerror}", code="database.no_lock") from None
    # Workers would keep the lock while they live. In this process it stays open, as the handles above.
    os.register_at_fork(after_in_child=lock.close)
    try:
        yield
    finally:
        if not lock.closed:
            fcntl.flock(lock, fcntl.LOCK_UN)


def bind_next_log(file: Path, again: bool = True) -> None:
    """Draw a mark, unless another process has the file open: its log keeps its mark.

    again: also if the file has a mark. A file without tables of Alembic is another program's, and stays as
    it is. Raises InputError.
    """
    if is_bound(file) and not again:
        return
    try:
        uri = f"{file.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, BUSY_SECONDS, isolation_level=None, uri=True)) as connection:
            if not connection.execute(IS_OURS).fetchone():
                return
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
            if is_bound(file) and not again:
                return
            mark = 1 + secrets.randbelow(MARKS - 1)
            # On disk before the file has the mark.
            _note(sidecar(file, "-mark"), mark, os.stat(file).st_ino)
            connection.execute(f"PRAGMA user_version = {mark}")
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        # With half a mark, the next start would take the log for another file's.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in IN_USE or not is_bound(file):
            raise InputError(f"cannot write {file}: {error}", code="database.no_mark") from None


def mark_of(file: Path) -> tuple[int, int, int] | None:
    """Return a file's device and inode number, and the mark in its header; None if it cannot be read."""
    try:
        status = os.stat(file)
        key = status.st_dev, status.st_ino
        if key not in _handles:
            _handles[key] = os.open(file, os.O_RDONLY)
    except OSError:
        return None
    return *key, int.from_bytes(os.pread(_handles[key], MARK_BYTES, MARK_AT), "big")


def has_foreign_log(file: Path) -> bool:
    """Return True if an SQLite file's log belongs to another file, such as a file that a backup replaced."""
    return size(sidecar(file, "-wal")) > 0 and not is_bound(file)


def is_bound(file: Path) -> bool:
    """Return True if FILE-mark is this file's.

    If FILE-mark was copied with the file, both have new inode numbers: then the mark suffices.
    """
    marked, note = mark_of(file), sidecar(file, "-mark")
    try:
        mark, inode, own = map(int, note.read_text().split())
        is_copied = note.stat().st_ino != own
    except (OSError, ValueError):
        return False
    return marked is not None and marked[2] == mark and (is_copied or marked[1] == inode)


def _note(path: Path, mark: int, inode: int) -> None:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        # Of one length: an earlier note is overwritten whole.
        os.pwrite(handle, f"{mark:20} {inode:20} {os.fstat(handle).st_ino:20}\n".encode(), 0)
        os.fsync(handle)
        os.close(handle)
        flush(path.parent)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", code="database.no_mark") from None


def empty_log(file: Path) -> str:
    """Write a log into its file, and return why data stays in the log, or "".

    Another file's log gets another name.
    """
    log = sidecar(file, "-wal")
    if not file.exists():
        return f"{file} is gone"
    if has_foreign_log(file):
        aside = free_name(log)
        os.replace(log, aside)
        sidecar(file, "-shm").unlink(missing_ok=True)
        return f"it is another file's, and is now {aside}"
    try:
        with closing(sqlite3.connect(file, BUSY_SECONDS)) as connection:
            (busy, _frames, _moved) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        return str(error)
    return "another program still reads it" if busy else ""


def set_log_aside(file: Path) -> None:
    """Empty the log of an overwritten file that is in use, after a copy of it is on disk.

    After a failure the log stays, and the next transaction tries again.
    """
    log = sidecar(file, "-wal")
    aside = free_name(log)
    try:
        aside.touch(0o600, exist_ok=False)
    except OSError:
        # Another process has begun the copy, or there is no room for its name.
        return
    try:
        shutil.copyfile(log, aside)
        flush(aside)
        flush(aside.parent)
        os.truncate(log, 0)
        LOGGER.error("%s was overwritten; its log, with acknowledged reports, is now %s", file, aside)
    except OSError as error:
        aside.unlink(missing_ok=True)
        LOGGER.error("%s was overwritten, and its log is not copied: %s", file, error.strerror)


def sidecar(file: Path, ending: str) -> Path:
    """Return the path of a database's other file: SQLite puts it next to the target of a link."""
    whole = file.resolve()
    return whole.with_name(whole.name + ending)


def free_name(path: Path) -> Path:
    """Return an unused name next to a file, for the file that is replaced."""
    names = (path.with_name(f"{path.name}.replaced-{number}") for number in count(1))
    return next(name for name in names if not name.exists())


def size(path: Path) -> int:
    """Return a file's size in bytes, or 0 if there is none."""
    return path.stat().st_size if path.exists() else 0


def flush(path: Path) -> None:
    """Flush a file's content, or the names in a folder, to disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
