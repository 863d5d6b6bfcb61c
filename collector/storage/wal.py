"""SQLite's write-ahead log: folded into its file when a server stops, and never into another's.

SQLite goes by names alone, and would write the pages of whatever log it finds into the file. So each new log
is bound to its file: a mark drawn for it stands in the file's header (`user_version`), and in a note beside
the log that says also which file it was.
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

LOGGER = logging.getLogger("collector")
# Where an SQLite file says how it is written and read, and what one says that has a log.
MODE_AT, WITH_LOG = 18, b"\2\2"
# Where its header has `user_version`, of 32 bits with a sign.
MARK_AT, MARK_BYTES, MARKS = 60, 4, 2**31
NOTE = "-wal.of"
# Of each kind of server one table: a file that has none of them is another program's.
TABLES = COLLECTORS, ISSUERS = "studies", "token_keys"
# How long a server that stops waits for somebody who reads the file, twice.
BUSY_SECONDS = 2.0
# How often a log is begun anew where others begin one at the same moment.
MOST_TURNS = 20
# The byte of the index beside a log that every connection holds a shared lock on.
USERS_AT = 128
# Kept open: closing any handle of a file drops the locks that SQLite holds on it in this process.
_looked_at: dict[tuple[int, int], int] = {}


@contextmanager
def folding_wal(file: Path | None) -> Iterator[None]:
    """Fold SQLite's log into its file on exit, so that copying one file loses nothing.

    Else whoever moved that file alone would leave acknowledged reports behind, and withdrawn ones in the log.
    Where another file has taken its place meanwhile, such as a backup, the log is put aside instead; one that
    was another's from the start is left to whoever reads why nothing started.
    file: None for a database that is no file.
    """
    if file is None:
        yield
        return
    process, served, was_foreign = os.getpid(), _identity(file), has_foreign_log(file)
    try:
        yield
    finally:
        # A worker leaves through here too, while the others still write.
        is_left = os.getpid() != process or (was_foreign and has_foreign_log(file))
        if served is not None and not is_left:
            _fold(file, served)


def take_log(connection: sqlite3.Connection, file: Path) -> None:
    """Put an SQLite file into WAL mode; a log that is made now is bound to it. Raises sqlite3.Error."""
    for _ in range(MOST_TURNS):
        if not _size(beside(file, "-wal")):
            _mark_anew(connection, file)
        connection.execute("PRAGMA journal_mode = WAL")
        # Only what reads opens the log: until then another process may draw another mark, and has it.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
            break
    else:
        raise sqlite3.OperationalError("database is locked")
    # From here on this connection keeps others from drawing another mark.
    if not _size(beside(file, "-wal")) and not _fits(file):
        _note(file, mark_of(file))


def beside(file: Path, ending: str) -> Path:
    """Where SQLite has a database's other file: beside what a link leads to."""
    whole = file.resolve()
    return whole.with_name(whole.name + ending)


def has_foreign_log(file: Path) -> bool:
    """Whether the log beside an SQLite file is another file's, such as the one that a backup replaced.

    SQLite itself does not look, and would write the log's pages into the file.
    """
    log = beside(file, "-wal")
    # The log first: a file says that it has one before that is made, and until it is deleted.
    return _size(log) > 0 and (_header(file).mode != WITH_LOG or not _fits(file)) and _size(log) > 0


def may_be_own_log(file: Path) -> Path | None:
    """The note of a foreign log whose mark is the file's all the same; None where the mark differs too.

    So it is where somebody restores a folder over itself file by file, and leaves what did not change, as
    rsync does; and where the file alone was copied while it was served.
    """
    note = beside(file, NOTE)
    try:
        return note if note.read_text().split()[0] == mark_of(file).hex() else None
    except (OSError, IndexError):
        return None


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
    # One that a note says to be this file's holds what another process acknowledged.
    if not _size(log) or (beside(file, NOTE).exists() and not has_foreign_log(file)):
        return
    aside = _name_aside(file)
    try:
        # Nobody beyond those who may read the log, even for a moment.
        os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        shutil.copyfile(log, aside)
        os.truncate(log, 0)
    except OSError as error:
        LOGGER.error("%s was overwritten while it was served; its log stays: %s", file, error.strerror)
    else:
        LOGGER.error("%s was overwritten while it was served; its log is now %s", file, aside)


def _name_aside(file: Path) -> Path:
    names = (beside(file, f"-wal.replaced-{number}") for number in count(1))
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
    log = beside(file, "-wal")
    if not _size(log):
        return
    aside = _name_aside(file)
    log.rename(aside)
    beside(file, "-shm").unlink(missing_ok=True)
    advice = "with the replaced file it reads what was stored last, delete it where that is not wanted"
    LOGGER.error(
        "%s was replaced while it was served; the replaced file's log is now %s: %s", file, aside, advice
    )


def _is_used(file: Path) -> bool:
    """Whether another process has the database open by this name."""
    try:
        with beside(file, "-shm").open("r+b") as index:
            fcntl.lockf(index, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, USERS_AT)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


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


def _note(file: Path, mark: bytes) -> None:
    """Write beside the log whose it is: the mark, the file's number in its file system, and the note's own.

    Raises OSError. With the rights of the file, as SQLite does it for the log: root may have been here.
    """
    note, rights = beside(file, NOTE), os.stat(file)
    new = note.with_name(f"{note.name}.{secrets.token_hex(8)}")
    handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, rights.st_mode & 0o666)
    try:
        if os.geteuid() == 0:
            os.fchown(handle, rights.st_uid, rights.st_gid)
        text = f"{mark.hex()} {rights.st_ino} {os.fstat(handle).st_ino}\n"
        os.pwrite(handle, text.encode(), 0)
        os.fsync(handle)
    finally:
        os.close(handle)
    new.replace(note)
    # Its name too, before the file says the same: power may fail at any time.
    folder = os.open(note.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _fits(file: Path) -> bool:
    """Whether a log is this file's by the note beside it; one without a note is an earlier release's.

    A note that is not the file it was written as was copied, and the others with it: then its mark tells.
    """
    note = beside(file, NOTE)
    try:
        mark, number, own = note.read_text().split()
        is_moved = os.stat(note).st_ino != int(own)
        return mark == mark_of(file).hex() and (is_moved or int(number) == os.stat(file).st_ino)
    except FileNotFoundError:
        return True
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


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
