"""A lock between processes that share a device's folder, a mark that outlives them, and permissions.

This is SQLite's own file lock: it works wherever the ledger does, and ends with the process that holds it.
"""

import _thread
import errno
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ldp_client.documents.errors import LedgerError
from ldp_client.words.text import say

FILE_NAME = "lock.sqlite3"
LEDGER_NAME = "ledger.sqlite3"
# Prefix of the files that a command leaves behind if it is killed while it writes them.
UNFINISHED = ".ldpkit-"
OWNER_ONLY = 0o700
OTHERS = 0o077

_making = _thread.allocate_lock()
# One object for each use of SQLite by this process. A child forked meanwhile inherits locks without a holder.
_open: set[object] = set()
_inherited: list[bool] = []


def _note_fork() -> None:
    if _open or _making.locked():
        _inherited.append(True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


@contextmanager
def in_sqlite(path: str) -> Iterator[None]:
    """Count as using a file. Raises LedgerError in a process forked while another thread was using one."""
    if _inherited:
        raise LedgerError.say("device.forked", path=path)
    mine = object()
    _open.add(mine)
    try:
        yield
    finally:
        _open.discard(mine)


class BusyError(LedgerError):
    """Another process holds the lock."""

    code = "device.busy"


@contextmanager
def locked(folder: str, seconds: float) -> Iterator[sqlite3.Connection]:
    """Hold the folder's lock, after waiting for at most `seconds`. Raises BusyError, LedgerError.

    A lost lock is created again, with its mark if there is a ledger.
    """
    path = os.path.join(folder, FILE_NAME)
    with in_sqlite(path):
        connection = _take(folder, path, seconds)
        try:
            yield connection
        except sqlite3.Error as error:
            raise LedgerError.say("device.lock_unusable", path=path, reason=error) from None
        finally:
            connection.close()


def _take(folder: str, path: str, seconds: float) -> sqlite3.Connection:
    connection = None
    try:
        make_private_file(path)
        if not os.access(path, os.W_OK):
            # SQLite would grant every process the lock.
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        connection = sqlite3.connect(path, timeout=seconds, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        if os.path.exists(os.path.join(folder, LEDGER_NAME)) and not is_marked(connection):
            mark(connection)
            connection.execute("BEGIN EXCLUSIVE")
    except OSError as error:
        raise LedgerError.say("device.lock_taken", path=path, reason=error.strerror) from None
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        kind = BusyError if "locked" in str(error) else LedgerError
        raise kind(say("device.lock_taken", path=path, reason=error)) from None
    return connection


def is_marked(lock: sqlite3.Connection) -> bool:
    """Return True if `mark` was ever called in this folder."""
    return bool(lock.execute("PRAGMA user_version").fetchone()[0])


def mark(lock: sqlite3.Connection) -> None:
    """Leave the mark durably. Ends the lock's transaction."""
    if not is_marked(lock):
        lock.execute("PRAGMA user_version = 1")
    lock.execute("COMMIT")


def is_lost(folder: str) -> bool:
    """Return True if the folder lacks the lock file, which every ledger has."""
    return not os.path.exists(os.path.join(folder, FILE_NAME))


def make_private_file(path: str) -> None:
    """Create an empty file that only its owner can read, unless it exists. Raises OSError.

    An existing file is not opened: closing it would drop every lock that this process has on it (POSIX). For
    the same reason no other thread locks the file while it is created.
    """
    with _making, suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY & ~0o111))


def holds_device(folder: str) -> bool:
    """Return True if the folder belongs to a device, even if it lost its ledger or its lock."""
    kept = (LEDGER_NAME, LEDGER_NAME + "-journal", FILE_NAME)
    return any([os.path.lexists(os.path.join(folder, name)) for name in kept])


def holds_others(folder: str) -> bool:
    """Return True if the folder has files that no device put there. Raises OSError."""
    own = (LEDGER_NAME, FILE_NAME, UNFINISHED)
    return any([not name.startswith(own) for name in os.listdir(folder)])


def keep_private(path: str) -> None:
    """Restrict a device's file or folder to its owner, and warn (logger "ldpkit") if others had access.

    A folder that is shared on purpose (sticky, such as /tmp) stays shared, and so does a folder with other
    files.
    """
    if os.name != "posix" or not os.path.exists(path):
        return
    before = stat.S_IMODE(os.stat(path).st_mode)
    if not before & OTHERS:
        return
    with suppress(OSError):
        if not before & stat.S_ISVTX and not (os.path.isdir(path) and holds_others(path)):
            os.chmod(path, before & OWNER_ONLY)
    is_open = stat.S_IMODE(os.stat(path).st_mode) & OTHERS
    import logging  # only when needed: it costs more than all else that a device loads

    key = "device.others_can_read" if is_open else "device.others_could_read"
    logging.getLogger("ldpkit").warning("%s", say(key, path=path))
