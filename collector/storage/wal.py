"""SQLite's write-ahead log: folded into its file when a server stops, and never into another's.

SQLite goes by names alone, and would write the pages of whatever log it finds into the file. So each new log
is bound to its file: a mark drawn for it stands in the file's header (`user_version`), and in FILE-mark
beside it, with the number of the file. A server holds a lock on FILE-mark for as long as it runs.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

from ldp_client.documents.errors import InputError

LOGGER = logging.getLogger("collector")
# Where an SQLite file says how it is written and read, and what one says that has a log.
MODE_AT, WITH_LOG = 18, b"\2\2"
# Where its header has `user_version`, of 32 bits with a sign. A backup has 0: no log is its own.
MARK_AT, MARK_BYTES, MARKS = 60, 4, 2**31
NO_MARK = bytes(MARK_BYTES)
MARK_FILE = "-mark"
# Of each kind of server one table: a file that has none of them is another program's.
TABLES = COLLECTORS, ISSUERS = "studies", "token_keys"
# How long a server that stops waits for somebody who reads the file, twice.
BUSY_SECONDS = 2.0
# How often a log is begun anew where others begin one at the same moment.
MOST_TURNS = 20
# Kept open: closing any handle of a file drops the locks that SQLite holds on it in this process.
_looked_at: dict[tuple[int, int], int] = {}


@contextmanager
def served_alone(file: Path | None) -> Iterator[None]:
    """Hold a database for one server; on exit fold SQLite's log into its file.

    Else whoever moved that file alone would leave acknowledged reports behind, and withdrawn ones in the log.
    Where another file has taken its place meanwhile, such as a backup, the log is put aside instead; one that
    was another's from the start is left to whoever reads why nothing started.
    file: None for a database that is no file; one that is not there is refused elsewhere. Raises InputError
    where another server holds it.
    """
    if file is None or not file.exists():
        yield
        return
    with locked(file):
        process, served, was_foreign = os.getpid(), _identity(file), has_foreign_log(file)
        try:
            yield
        finally:
            # A worker leaves through here too, while the others still write.
            if os.getpid() == process:
                _leave(file, served, was_foreign)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep servers away from an SQLite file. Raises InputError where one works on it."""
    name = beside(file, MARK_FILE)
    try:
        handle = _open_lock(file)
    except OSError as error:
        raise InputError(f"cannot write {name}: {error.strerror}", code="database.no_lock") from None
    with open(handle, "rb", buffering=0) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"a server works on database {file}: stop that one first", code="database.served_already"
            ) from None
        except OSError as error:
            raise InputError(f"cannot lock {name}: {error.strerror}", code="database.no_lock") from None
        # Workers would keep the lock for as long as they live.
        os.register_at_fork(after_in_child=lock.close)
        yield


def take_log(connection: sqlite3.Connection, file: Path) -> None:
    """Put an SQLite file into WAL mode; a log that is made now is bound to it. Raises sqlite3.Error."""
    for _ in range(MOST_TURNS):
        if not size(beside(file, "-wal")):
            _mark_anew(connection, file)
        connection.execute("PRAGMA journal_mode = WAL")
        # Only what reads opens the log: until then another process may draw another mark, and has it.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
            break
    else:
        raise sqlite3.OperationalError("database is locked")
    # From here on this connection keeps others from drawing another mark.
    if not size(beside(file, "-wal")) and mark_of(file) != NO_MARK and not _fits(file):
        _note(file, mark_of(file))


def beside(file: Path, ending: str) -> Path:
    """Where SQLite has a database's other file: beside what a link leads to."""
    whole = file.resolve()
    return whole.with_name(whole.name + ending)


def has_foreign_log(file: Path) -> bool:
    """Whether the log beside an SQLite file is another file's, such as the one that a backup replaced."""
    log = beside(file, "-wal")
    # The log first: a file says that it has one before that is made, and until it is deleted.
    return size(log) > 0 and (_header(file).mode != WITH_LOG or not _fits(file)) and size(log) > 0


def is_overwritten(file: Path, mark: bytes) -> bool:
    """Whether other content was written into a file whose log has this mark, such as a backup with `cp`."""
    return _header(file) != _Header(WITH_LOG, mark)


def mark_of(file: Path) -> bytes:
    """The mark of the log that a file has, or had last."""
    return _header(file).mark


def save_log(file: Path) -> None:
    """Keep a copy of the log of a file that was overwritten, and empty it.

    SQLite writes the log's pages into whatever the file is by then as soon as its last connection is closed.
    """
    log = beside(file, "-wal")
    # One that is noted as this file's holds what another process acknowledged.
    if not size(log) or (beside(file, MARK_FILE).exists() and not has_foreign_log(file)):
        return
    aside = free_name(log)
    try:
        # Nobody beyond those who may read the log, even for a moment.
        os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        shutil.copyfile(log, aside)
        os.truncate(log, 0)
    except OSError as error:
        LOGGER.error("%s was overwritten while it was served; its log stays: %s", file, error.strerror)
    else:
        LOGGER.error("%s was overwritten while it was served; its log is now %s", file, aside)


def free_name(path: Path) -> Path:
    """A name beside a file's, for what is replaced, that nothing has."""
    names = (path.with_name(f"{path.name}.replaced-{number}") for number in count(1))
    return next(name for name in names if not name.exists())


def fold(file: Path) -> str:
    """Write a log's pages into its file; the last connection that is closed deletes the log then.

    Waits for others twice as long as a connection waits for a lock. Returns why something stays in the log,
    "" where nothing does.
    """
    try:
        with closing(sqlite3.connect(file, BUSY_SECONDS)) as connection:
            for _ in range(2):
                (busy, _frames, _moved) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:
                    return ""
        return "somebody still reads it"
    except sqlite3.Error as error:
        return str(error)


def _leave(file: Path, served: tuple[int, int] | None, was_foreign: bool) -> None:
    """What a server does with the log as it ends. served: which file it was then."""
    if not file.exists():
        LOGGER.error("%s is gone; its log stays where it is", file)
    elif has_foreign_log(file):
        if not was_foreign:
            _put_aside(file)
    elif _identity(file) == served and (why := fold(file)):
        line = "%s keeps what was stored last in its log, as %s: copy both, never the file alone"
        LOGGER.error(line, file, why)


def _put_aside(file: Path) -> None:
    """Give the log of a file that was replaced another name, so that nothing takes it in."""
    log = beside(file, "-wal")
    aside = free_name(log)
    log.rename(aside)
    beside(file, "-shm").unlink(missing_ok=True)
    LOGGER.error("%s was replaced while it was served; the replaced file's log is now %s", file, aside)


def _mark_anew(connection: sqlite3.Connection, file: Path) -> None:
    """Draw a mark for the log that comes next, unless others are connected, who may have begun one."""
    try:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        is_alone = connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        # Another program's file keeps what it says of itself.
        ours = "SELECT 1 FROM sqlite_master WHERE name IN (?, ?)"
        if is_alone and connection.execute(ours, TABLES).fetchone():
            mark = 1 + secrets.randbelow(MARKS - 1)
            connection.execute(f"PRAGMA user_version = {mark}")
            _note(file, mark.to_bytes(MARK_BYTES, "big"))
        connection.execute("COMMIT")
    except (sqlite3.OperationalError, OSError):
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _open_lock(file: Path) -> int:
    """A handle of FILE-mark, made with the rights of the file. Raises OSError."""
    lock = beside(file, MARK_FILE)
    try:
        return os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        pass
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    if file.exists():
        os.fchmod(handle, os.stat(file).st_mode & 0o666)
    owned_as(lock, file)
    return handle


def owned_as(path: Path, file: Path) -> None:
    """Give what root has made to the owner of a file, or else of its folder. Raises OSError."""
    if os.geteuid() == 0:
        rights = os.stat(file if file.exists() else file.resolve().parent)
        os.chown(path, rights.st_uid, rights.st_gid)


def _note(file: Path, mark: bytes) -> None:
    """Write whose the next log is: the mark, the file's number in its file system, and the note's own.

    In one write of one sector, on the disk before the file says the same. Raises OSError.
    """
    handle = _open_lock(file)
    try:
        text = f"{mark.hex()} {os.stat(file).st_ino:20} {os.fstat(handle).st_ino:20}\n"
        os.pwrite(handle, text.encode(), 0)
        os.fsync(handle)
    finally:
        os.close(handle)
    folder = os.open(file.resolve().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _fits(file: Path) -> bool:
    """Whether a log is this file's by the note, where there is one; a backup has no log of its own.

    A note that is not the file it was written as was copied, and the others with it: then its mark tells.
    """
    note, mark = beside(file, MARK_FILE), mark_of(file)
    try:
        words = note.read_text().split()
        if not words:
            raise FileNotFoundError
        noted, number, own = words
        is_copied = os.stat(note).st_ino != int(own)
        return noted == mark.hex() and (is_copied or int(number) == os.stat(file).st_ino)
    except FileNotFoundError:
        return mark != NO_MARK
    except (OSError, ValueError):
        return False


class _Header(NamedTuple):
    """What an SQLite file says of its log."""

    mode: bytes
    mark: bytes


def _header(file: Path) -> _Header:
    identity = _identity(file)
    if identity is None:
        return _Header(b"", b"")
    if identity not in _looked_at:
        _looked_at[identity] = os.open(file, os.O_RDONLY)
    read = os.pread(_looked_at[identity], MARK_AT + MARK_BYTES, 0)
    return _Header(read[MODE_AT : MODE_AT + len(WITH_LOG)], read[MARK_AT:])


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def size(path: Path) -> int:
    """Of a file in bytes; 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
