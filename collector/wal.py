"""SQLite's write-ahead log: checkpointed into its file when a server stops, and never into another file.

SQLite matches files by name alone, and would write the pages of any log it finds into the file. So each new
log is bound to its file by a random mark. The mark is in the file's header (`user_version`), and in FILE-mark
next to it, with the file's inode number. A server holds a lock on FILE-mark while it runs.
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
# Offset of the read and write versions in an SQLite file, and their bytes in WAL mode.
MODE_AT, WITH_LOG = 18, b"\2\2"
# Offset and size of `user_version` in its header, a signed number. A backup has 0: it has no log.
MARK_AT, MARK_BYTES, MARKS = 60, 4, 2**31
NO_MARK = bytes(MARK_BYTES)
MARK_FILE = "-mark"
# One table for each kind of server: a file without any of them belongs to another program.
TABLES = COLLECTORS, ISSUERS = "studies", "token_keys"
# How long a stopping server waits for readers of the file, twice.
BUSY_SECONDS = 2.0
# How often to begin a log again if other processes begin a log at the same moment.
MOST_TURNS = 20
# Kept open: closing any handle of a file drops the locks that SQLite holds on it in this process.
_looked_at: dict[tuple[int, int], int] = {}


@contextmanager
def served_alone(file: Path | None) -> Iterator[None]:
    """Hold a database for one server; on exit, checkpoint SQLite's log into its file.

    Otherwise an operator who moves only that file would lose acknowledged reports, and leave withdrawn
    reports in the log. If another file has replaced it meanwhile, such as a backup, the log is renamed
    instead. A log that belonged to another file from the start stays: the operator reads why nothing started.
    file: None for a database that is no file. A missing file is rejected elsewhere. Raises InputError if
    another server holds it.
    """
    if file is None or not file.exists():
        yield
        return
    with locked(file):
        process, served, was_foreign = os.getpid(), _identity(file), has_foreign_log(file)
        try:
            yield
        finally:
            # Workers also run this when they exit, while the other workers still write.
            if os.getpid() == process:
                _leave(file, served, was_foreign)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep servers away from an SQLite file. Raises InputError if a server works on it."""
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
        # Workers would keep the lock while they live.
        os.register_at_fork(after_in_child=lock.close)
        yield


def take_log(connection: sqlite3.Connection, file: Path) -> None:
    """Put an SQLite file into WAL mode, and bind a new log to it. Raises sqlite3.Error."""
    for _ in range(MOST_TURNS):
        if not size(beside(file, "-wal")):
            _mark_anew(connection, file)
        connection.execute("PRAGMA journal_mode = WAL")
        # Only a read opens the log: until then another process may draw another mark.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
            break
    else:
        raise sqlite3.OperationalError("database is locked")
    # From here on this connection prevents others from drawing another mark.
    if not size(beside(file, "-wal")) and mark_of(file) != NO_MARK and not _fits(file):
        _note(file, mark_of(file))


def beside(file: Path, ending: str) -> Path:
    """Return the path of a database's other file: SQLite puts it next to the target of a link."""
    whole = file.resolve()
    return whole.with_name(whole.name + ending)


def has_foreign_log(file: Path) -> bool:
    """Return True if an SQLite file's log belongs to another file, such as a file that a backup replaced."""
    log = beside(file, "-wal")
    # Check the log first: a file's header shows a log before it is made, and until it is deleted.
    return size(log) > 0 and (_header(file).mode != WITH_LOG or not _fits(file)) and size(log) > 0


def is_overwritten(file: Path, mark: bytes) -> bool:
    """Return True if the file of a log with this mark was overwritten, such as with a backup by `cp`."""
    return _header(file) != _Header(WITH_LOG, mark)


def mark_of(file: Path) -> bytes:
    """Return the mark of a file's current or last log."""
    return _header(file).mark


def save_log(file: Path) -> None:
    """Save a copy of the log of an overwritten file, and empty the log.

    When its last connection closes, SQLite writes the log's pages into the file, even with other content.
    """
    log = beside(file, "-wal")
    # A log that is noted as this file's has data that another process acknowledged.
    if not size(log) or (beside(file, MARK_FILE).exists() and not has_foreign_log(file)):
        return
    aside = free_name(log)
    try:
        # Make it private before it has contents.
        os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        shutil.copyfile(log, aside)
        os.truncate(log, 0)
    except OSError as error:
        LOGGER.error("%s was overwritten while it was served; its log stays: %s", file, error.strerror)
    else:
        LOGGER.error("%s was overwritten while it was served; its log is now %s", file, aside)


def free_name(path: Path) -> Path:
    """Return an unused name next to a file, for the file that is replaced."""
    names = (path.with_name(f"{path.name}.replaced-{number}") for number in count(1))
    return next(name for name in names if not name.exists())


def fold(file: Path) -> str:
    """Checkpoint a log into its file. The last connection to close then deletes the log.

    Waits for others twice as long as a connection waits for a lock. Returns why data stays in the log, or "".
    """
    try:
        with closing(sqlite3.connect(file, BUSY_SECONDS)) as connection:
            for _ in range(2):
                (busy, _frames, _moved) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:
                    return ""
        return "another program still reads it"
    except sqlite3.Error as error:
        return str(error)


def _leave(file: Path, served: tuple[int, int] | None, was_foreign: bool) -> None:
    """Handle the log when a server ends. served: the file's identity when the server started."""
    if not file.exists():
        LOGGER.error("%s is gone; its log stays where it is", file)
    elif has_foreign_log(file):
        if not was_foreign:
            _put_aside(file)
    elif _identity(file) == served and (why := fold(file)):
        line = "%s keeps its latest data in its log, because %s: copy both, never the file alone"
        LOGGER.error(line, file, why)


def _put_aside(file: Path) -> None:
    """Rename the log of a replaced file, so that no other file takes it."""
    log = beside(file, "-wal")
    aside = free_name(log)
    log.rename(aside)
    beside(file, "-shm").unlink(missing_ok=True)
    LOGGER.error("%s was replaced while it was served; the replaced file's log is now %s", file, aside)


def _mark_anew(connection: sqlite3.Connection, file: Path) -> None:
    """Draw a mark for the next log, unless other connections exist, which may have begun a log."""
    try:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        is_alone = connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        # Leave user_version alone in another program's file.
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
    """Open FILE-mark and return its handle. A new FILE-mark gets the file's rights. Raises OSError."""
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
    """Give a file made by root to the owner of `file`, or else of its folder. Raises OSError."""
    if os.geteuid() == 0:
        rights = os.stat(file if file.exists() else file.resolve().parent)
        os.chown(path, rights.st_uid, rights.st_gid)


def _note(file: Path, mark: bytes) -> None:
    """Note which file the next log belongs to: the mark, the file's inode number, and the note's own.

    The note is one write of one sector, on disk before the file has the mark. Raises OSError.
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
    """Return True if the note says that a log is this file's. Without a note, a mark in the file suffices.

    A backup has no mark. If the note's inode number differs, the note was copied with the other files: then
    only its mark counts.
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
    """The parts of an SQLite header that describe its log."""

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
    """Return a file's size in bytes, or 0 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
