"""The device's memory: past answers, their cost, and the reports that still have to be sent.

It is one SQLite file. Data that belongs together is written in one transaction, durable when `writing` ends.
So a report never leaves without its spend, and no spend exists without its report.

Beside it is a lock between the processes that share the folder, with a mark that outlives them. It is
SQLite's own lock: it works wherever the ledger does, and ends with the process that holds it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ldp_client.device.layout import (
    LAYOUT,
    LEDGER_NAME,
    LOCK_NAME,
    TABLES,
    create_tables,
    keep_private,
    make_private_file,
)
from ldp_client.device.outbox import Queued, digest_of, pending
from ldp_client.documents.errors import LedgerError

if TYPE_CHECKING:
    import sqlite3
    from fractions import Fraction

LOCK_SECONDS = 10.0
# Each body has a separate digest, checked when it is sent, so sealing costs the same for any outbox.
_SEALED = (
    "SELECT origin, study, question, version, epsilon, delta FROM spent ORDER BY 1, 2, 3",
    "SELECT id, secret, nodes, origin, study, version, document, closes, channel, state, due, digest, "
    "ticket FROM reports ORDER BY id",
    "SELECT origin, study, question, noise, hex(answer) FROM permanent ORDER BY 1, 2, 3",
    "SELECT origin, study, version, digest FROM answered ORDER BY 1, 2",
    "SELECT origin, study, digest, day FROM consents ORDER BY 1, 2",
    "SELECT report, key, turned, nonce, salt, factor, token FROM tokens ORDER BY report",
    "SELECT id, epsilon FROM budget",
)


class BusyError(LedgerError):
    """Another process holds the lock."""

    code = "device.busy"


@contextmanager
def locked(folder: str, seconds: float) -> Iterator[sqlite3.Connection]:
    """Hold the folder's lock, after waiting for at most `seconds`. Raises BusyError, LedgerError.

    A lost lock is created again, with its mark if there is a ledger.
    """
    import sqlite3

    path = os.path.join(folder, LOCK_NAME)
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
        raise LedgerError(
            f"the lock {path} cannot be taken: {error.strerror}", code="device.lock_taken"
        ) from None
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
    """Return True if `mark` was ever called in this folder."""
    return bool(lock.execute("PRAGMA user_version").fetchone()[0])


def mark(lock: sqlite3.Connection) -> None:
    """Leave the mark durably. Ends the lock's transaction."""
    if not is_marked(lock):
        lock.execute("PRAGMA user_version = 1")
    lock.execute("COMMIT")


def reseal(connection: sqlite3.Connection) -> None:
    """Write the seal of the current rows."""
    connection.execute("UPDATE seal SET digest = ?", (_seal_of(connection),))


def refuse_broken_seal(connection: sqlite3.Connection) -> None:
    """Raise LedgerError unless every row is as it was written."""
    found = connection.execute("SELECT digest FROM seal").fetchall()
    if found != [(_seal_of(connection),)]:
        raise LedgerError(
            "the ledger is damaged: its rows differ from the rows that were written",
            code="device.ledger_changed",
        )


def _seal_of(connection: sqlite3.Connection) -> str:
    import json

    rows = [connection.execute(query).fetchall() for query in _SEALED]
    # repr for bytes: damage can turn a text into a blob, which then matches no row's text.
    return digest_of(json.dumps(rows, default=repr))


class Ledger:
    """The ledger in a folder of the device; created if missing.

    origin: of the device's collector; it decides which rows `is_own(origin)` in SQL selects. Any trouble with
    the file, such as another layout or a broken seal, raises LedgerError: a device that cannot read its past
    refuses to answer.
    """

    def __init__(self, folder: str, origin: str = "") -> None:
        self.origin = origin
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            if not os.path.isabs(folder):
                # A program that changes its working folder later stays the same device.
                folder = os.path.join(os.getcwd(), folder)
        except (OSError, ValueError) as error:
            # ValueError: a name that no folder can have, such as a name with a NUL.
            reason = getattr(error, "strerror", error)
            raise LedgerError(f"cannot make the folder {folder}: {reason}", code="device.no_folder") from None
        self.folder = folder
        self.path = os.path.join(folder, LEDGER_NAME)
        for path in (self.path, os.path.join(folder, LOCK_NAME)):
            if os.path.islink(path):  # planted there, it would lead writes and a new mode to another file
                raise LedgerError(
                    f"{path} is a symbolic link: a ledger is a file of its folder. Remove the link, or name "
                    "the folder that it leads to",
                    code="device.ledger_link",
                )
            keep_private(path)
        if not os.path.exists(self.path):
            self._create()
        self._restore_lock()
        with self._open() as connection:
            # Read one state: another process may write between two statements.
            connection.execute("BEGIN")
            layout = connection.execute("PRAGMA user_version").fetchone()[0]
            if layout != LAYOUT:
                raise LedgerError(
                    f"the ledger has layout {layout}, but this ldpkit knows {LAYOUT}: use the ldpkit that "
                    "wrote it. A new folder would forget answers and budget",
                    code="device.ledger_layout",
                )
            if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
                raise LedgerError(
                    "the ledger is damaged: SQLite's check of its structure failed",
                    code="device.ledger_damaged",
                )
            refuse_broken_seal(connection)

    def adopt(self, former: Sequence[str]) -> None:
        """Move the rows of former origins, and those without one, to the collector. Raises LedgerError.

        A row stays if the collector has one for the same question.
        """
        former = ["", *former]
        query = " UNION ".join([f"SELECT origin FROM {table}" for table in TABLES])
        with self.reading() as connection:
            if not any([origin in former for (origin,) in connection.execute(query).fetchall()]):
                return
        with self.writing() as connection:
            for table in TABLES:
                for old in former:
                    move = f"UPDATE OR IGNORE {table} SET origin = ? WHERE origin = ?"
                    connection.execute(move, (self.origin, old))

    def spent(self) -> list[Fraction]:
        """Return the epsilon that each question cost so far."""
        from fractions import Fraction

        with self.reading() as connection:
            rows = connection.execute("SELECT epsilon FROM spent").fetchall()
        return [Fraction(epsilon) for (epsilon,) in rows]

    def queued(self) -> list[Queued]:
        """Return the reports that wait to be sent, due or not."""
        with self.reading() as connection:
            return pending(connection)

    def budget(self) -> str | None:
        """Return the lifetime budget in the ledger, None if none was stated yet. Raises LedgerError."""
        with self.reading() as connection:
            row = connection.execute("SELECT epsilon FROM budget").fetchone()
        return None if row is None else str(row[0])

    def keep_budget(self, stated: str, is_raised: bool = False) -> Fraction:
        """Keep the smallest budget that was stated, or a larger budget if it is raised.

        Returns the kept budget. Raises LedgerError.
        """
        from fractions import Fraction

        number, kept = Fraction(stated), self.budget()
        if kept is not None and (number == Fraction(kept) or (number > Fraction(kept) and not is_raised)):
            return Fraction(kept)
        with self.writing() as connection:
            # Another process may have stated a budget meanwhile.
            row = connection.execute("SELECT epsilon FROM budget").fetchone()
            if row is not None and number > Fraction(row[0]) and not is_raised:
                return Fraction(row[0])
            connection.execute("INSERT OR REPLACE INTO budget VALUES (1, ?)", (stated,))
            return number

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that sees one undamaged state. Raises LedgerError."""
        with self._open() as connection:
            connection.execute("BEGIN")
            refuse_broken_seal(connection)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction: durable at its end, undone by any error. Raises LedgerError."""
        self._restore_lock()
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            refuse_broken_seal(connection)
            yield connection
            reseal(connection)
            connection.execute("COMMIT")

    def _restore_lock(self) -> None:
        """Create and mark a lost lock again while the ledger exists: losing both would go unnoticed."""
        if not os.path.exists(os.path.join(self.folder, LOCK_NAME)):
            with locked(self.folder, LOCK_SECONDS):
                pass

    def _create(self) -> None:
        """Create the file under another name first: a file with the ledger's name is always complete."""
        fresh = self.path + ".new"
        with locked(self.folder, LOCK_SECONDS) as lock:
            if os.path.exists(self.path):
                return
            if is_marked(lock) or os.path.exists(self.path + "-journal"):
                raise self._gone()
            try:
                for leftover in (fresh, fresh + "-journal"):
                    if os.path.exists(leftover):
                        os.unlink(leftover)
                make_private_file(fresh)
                with self._open(fresh) as connection:
                    connection.execute("BEGIN IMMEDIATE")
                    create_tables(connection)
                    reseal(connection)
                    connection.execute("COMMIT")
                if os.path.exists(self.path):
                    raise LedgerError(
                        f"another process made {self.path} at the same time: file locks do not work on this "
                        "disk",
                        code="device.ledger_twice",
                    )
                os.replace(fresh, self.path)
                _sync(self.folder)
            except OSError as error:
                raise LedgerError(
                    f"cannot make the ledger {self.path}: {error.strerror}", code="device.no_ledger"
                ) from None
            mark(lock)

    @contextmanager
    def _open(self, path: str = "") -> Iterator[sqlite3.Connection]:
        """Yield a connection that is rolled back and closed on any error."""
        import sqlite3

        connection = None
        if not os.path.exists(path or self.path):
            # SQLite would create an empty ledger.
            raise self._gone()
        try:
            connection = sqlite3.connect(path or self.path, timeout=LOCK_SECONDS, isolation_level=None)
            # The journal's removal is the commit: EXTRA makes that durable too.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA secure_delete = ON")
            connection.create_function("is_own", 1, self.origin.__eq__)
            yield connection
        except (sqlite3.Error, ValueError, OverflowError) as error:
            # Omit another error's text: it may come from reading an answer, and repeat it.
            reason = error if isinstance(error, sqlite3.Error) else type(error).__name__
            raise LedgerError(
                f"the ledger {self.path} cannot be used: {reason}", code="device.ledger_unusable"
            ) from None
        finally:
            if connection is not None:
                connection.close()

    def _gone(self) -> LedgerError:
        return LedgerError(
            f"the ledger {self.path} is gone: this device's earlier answers are unknown",
            code="device.ledger_gone",
        )


def _sync(folder: str) -> None:
    """Make a rename durable if folders can be opened (not on Windows)."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
