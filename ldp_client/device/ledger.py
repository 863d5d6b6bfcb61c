"""The device's memory: past answers, their cost, and the reports that still have to be sent.

It is one SQLite file. Data that belongs together is written in one transaction, durable when `writing` ends.
So a report never leaves without its spend, and no spend exists without its report.
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction

from ldp_client.device.budget import Spend
from ldp_client.device.locking import FILE_NAME as LOCK_NAME
from ldp_client.device.locking import (
    LEDGER_NAME,
    in_sqlite,
    is_lost,
    is_marked,
    keep_private,
    locked,
    make_private_file,
    mark,
)
from ldp_client.device.outbox import Queued, digest_of, pending
from ldp_client.device.trust import adopt, has_rows
from ldp_client.documents.errors import LedgerError

LAYOUT = 9
LOCK_SECONDS = 10.0

# origin: the origin of the study's collector, as in trust.py. secret: hexadecimal. version, document,
# closes: the answered study's version, digest and last day.
_REPORTS = """
CREATE TABLE reports (
  id TEXT PRIMARY KEY, secret TEXT NOT NULL, collector TEXT NOT NULL, origin TEXT NOT NULL,
  study TEXT NOT NULL, version INTEGER NOT NULL, document TEXT NOT NULL, closes TEXT NOT NULL,
  state TEXT NOT NULL, due INTEGER NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL,
  invitation TEXT NOT NULL) WITHOUT ROWID;
"""

# The identity of the collector that serves a document at a base URL, and the pinned keys that signed it.
_DOCUMENTS = """
CREATE TABLE identities (
  document TEXT NOT NULL, collector TEXT NOT NULL, identity TEXT NOT NULL,
  PRIMARY KEY (document, collector)) WITHOUT ROWID;
CREATE TABLE signed (document TEXT PRIMARY KEY, keys TEXT NOT NULL) WITHOUT ROWID;
"""

# noise: a digest of the permanent answer's law. answered: the latest version that was answered.
_ANSWERS = """
CREATE TABLE spent (
  origin TEXT NOT NULL, study TEXT NOT NULL, question TEXT NOT NULL, version INTEGER NOT NULL,
  epsilon TEXT NOT NULL, delta TEXT NOT NULL, PRIMARY KEY (origin, study, question)) WITHOUT ROWID;
CREATE TABLE permanent (
  origin TEXT NOT NULL, study TEXT NOT NULL, question TEXT NOT NULL, noise TEXT NOT NULL,
  answer BLOB NOT NULL, PRIMARY KEY (origin, study, question)) WITHOUT ROWID;
CREATE TABLE answered (
  origin TEXT NOT NULL, study TEXT NOT NULL, version INTEGER NOT NULL, digest TEXT NOT NULL,
  PRIMARY KEY (origin, study)) WITHOUT ROWID;
CREATE TABLE consents (
  origin TEXT NOT NULL, study TEXT NOT NULL, digest TEXT NOT NULL, day TEXT NOT NULL,
  PRIMARY KEY (origin, study)) WITHOUT ROWID;
"""

# How a study's reports leave, by its digest; the reports' tokens. See channels.py.
_CHANNELS = """
CREATE TABLE channels (
  document TEXT PRIMARY KEY, channel TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tokens (
  report TEXT PRIMARY KEY, key INTEGER NOT NULL, turned INTEGER NOT NULL, nonce TEXT NOT NULL,
  salt TEXT NOT NULL, factor TEXT NOT NULL, token TEXT NOT NULL) WITHOUT ROWID;
"""

# The lifetime budget that the device's owner stated, as a decimal: one row, once it was stated.
_BUDGET = """
CREATE TABLE budget (id INTEGER PRIMARY KEY CHECK (id = 1), epsilon TEXT NOT NULL);
"""

# A SHA-256 over every row that decides what a device may do. SQLite notices damage only to its own structure;
# the seal notices a changed, lost or restored row. It is not secret: it detects damage, not forgery, nor the
# replacement of the whole file by an older one.
_SEAL = """
CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), digest TEXT NOT NULL);
INSERT INTO seal VALUES (1, '');
"""

# Each body has a separate digest, checked when it is sent, so sealing costs the same for any outbox.
_SEALED = (
    "SELECT origin, study, question, version, epsilon, delta FROM spent ORDER BY 1, 2, 3",
    "SELECT id, secret, collector, origin, study, version, document, closes, state, due, digest, "
    "invitation FROM reports ORDER BY id",
    "SELECT document, collector, identity FROM identities ORDER BY 1, 2",
    "SELECT document, keys FROM signed ORDER BY document",
    "SELECT origin, study, question, noise, hex(answer) FROM permanent ORDER BY 1, 2, 3",
    "SELECT origin, study, version, digest FROM answered ORDER BY 1, 2",
    "SELECT origin, study, digest, day FROM consents ORDER BY 1, 2",
    "SELECT document, channel FROM channels ORDER BY document",
    "SELECT report, key, turned, nonce, salt, factor, token FROM tokens ORDER BY report",
    "SELECT id, epsilon FROM budget",
)


def create_tables(connection: sqlite3.Connection) -> None:
    """Create an empty ledger, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in (_ANSWERS + _REPORTS + _DOCUMENTS + _CHANNELS + _BUDGET + _SEAL).split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {LAYOUT}")
    reseal(connection)
    connection.execute("COMMIT")


def reseal(connection: sqlite3.Connection) -> None:
    """Write the seal of the current rows."""
    connection.execute("UPDATE seal SET digest = ?", (_seal_of(connection),))


def refuse_broken_seal(connection: sqlite3.Connection) -> None:
    """Raise LedgerError unless every row is as it was written."""
    found = connection.execute("SELECT digest FROM seal").fetchall()
    if found != [(_seal_of(connection),)]:
        raise LedgerError.say("device.ledger_changed")


def refuse_damage(connection: sqlite3.Connection) -> None:
    """Raise LedgerError for another layout, a broken structure or a broken seal."""
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found != LAYOUT:
        raise LedgerError.say("device.ledger_layout", found=found, known=LAYOUT)
    if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        raise LedgerError.say("device.ledger_damaged")
    refuse_broken_seal(connection)


def _seal_of(connection: sqlite3.Connection) -> str:
    rows = [connection.execute(query).fetchall() for query in _SEALED]
    # repr for bytes: damage can turn a text into a blob, which then matches no row's text.
    return digest_of(json.dumps(rows, default=repr))


class Ledger:
    """The ledger in a folder of the device; created if missing.

    origin: of the device's collector; it decides which rows `is_own(origin)` in SQL selects. Any trouble with
    the file raises LedgerError: a device that cannot read its past refuses to answer.
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
            raise LedgerError.say("device.no_folder", folder=folder, reason=reason) from None
        self.folder = folder
        self.path = os.path.join(folder, LEDGER_NAME)
        for path in (self.path, os.path.join(folder, LOCK_NAME)):
            if os.path.islink(path):  # planted there, it would lead writes and a new mode to another file
                raise LedgerError.say("device.ledger_link", path=path)
        for path in (folder, self.path, os.path.join(folder, LOCK_NAME)):
            keep_private(path)
        if not os.path.exists(self.path):
            self._create()
        self._restore_lock()
        with self._open() as connection:
            # Read one state: another process may write between two statements.
            connection.execute("BEGIN")
            refuse_damage(connection)

    def adopt(self, former: Sequence[str]) -> None:
        """Move the rows of former origins, and those without one, to the collector. Raises LedgerError."""
        former = ["", *former]
        with self.reading() as connection:
            is_needed = has_rows(connection, former)
        if is_needed:
            with self.writing() as connection:
                adopt(connection, self.origin, former)

    def spent(self) -> list[Spend]:
        """Return all spends so far."""
        query = "SELECT study, question, version, epsilon, delta FROM spent"
        with self.reading() as connection:
            rows = connection.execute(query).fetchall()
        return [Spend(row[0], row[1], row[2], Fraction(row[3]), Fraction(row[4])) for row in rows]

    def queued(self) -> list[Queued]:
        """Return the reports that wait to be sent, due or not."""
        with self.reading() as connection:
            return pending(connection)

    def budget(self) -> str | None:
        """Return the lifetime budget in the ledger, None if none was stated yet. Raises LedgerError."""
        with self.reading() as connection:
            row = connection.execute("SELECT epsilon FROM budget").fetchone()
        return None if row is None else str(row[0])

    def keep_budget(self, stated: str, is_raised: bool = False) -> str:
        """Keep the smallest budget that was stated, or a larger budget if it is raised.

        Returns the kept budget. Raises LedgerError.
        """
        kept = self.budget()
        if kept is not None and not _replaces(stated, kept, is_raised):
            return kept
        with self.writing() as connection:
            # Another process may have stated a budget meanwhile.
            row = connection.execute("SELECT epsilon FROM budget").fetchone()
            if row is None or _replaces(stated, row[0], is_raised):
                connection.execute("INSERT OR REPLACE INTO budget VALUES (1, ?)", (stated,))
                return stated
            return str(row[0])

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
        if is_lost(self.folder):
            with locked(self.folder, LOCK_SECONDS):
                pass

    def _create(self) -> None:
        """Create the file under another name first: a file with the ledger's name is always complete."""
        with locked(self.folder, LOCK_SECONDS) as lock:
            if os.path.exists(self.path):
                return
            if is_marked(lock) or os.path.exists(self.path + "-journal"):
                raise LedgerError.say("device.ledger_gone", path=self.path)
            try:
                self._make_whole()
            except OSError as error:
                raise LedgerError.say("device.no_ledger", path=self.path, reason=error.strerror) from None
            mark(lock)

    def _make_whole(self) -> None:
        fresh = self.path + ".new"
        for leftover in (fresh, fresh + "-journal"):
            if os.path.exists(leftover):
                os.unlink(leftover)
        make_private_file(fresh)
        with self._open(fresh) as connection:
            create_tables(connection)
        if os.path.exists(self.path):
            raise LedgerError.say("device.ledger_twice", path=self.path)
        os.replace(fresh, self.path)
        _sync(self.folder)

    @contextmanager
    def _open(self, path: str = "") -> Iterator[sqlite3.Connection]:
        """Yield a connection that is rolled back and closed on any error."""
        connection = None
        if not os.path.exists(path or self.path):
            # SQLite would create an empty ledger.
            raise LedgerError.say("device.ledger_gone", path=self.path)
        with in_sqlite(self.path):
            try:
                connection = sqlite3.connect(path or self.path, timeout=LOCK_SECONDS, isolation_level=None)
                # The journal's removal is the commit: EXTRA makes that durable too.
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("PRAGMA secure_delete = ON")
                connection.create_function("is_own", 1, self.origin.__eq__)
                yield connection
            except sqlite3.Error as error:
                raise LedgerError.say("device.ledger_unusable", path=self.path, reason=error) from None
            except (ValueError, OverflowError) as error:
                # Omit the error's text: it may come from reading an answer, and repeat it.
                raise LedgerError.say(
                    "device.ledger_unusable", path=self.path, reason=type(error).__name__
                ) from None
            finally:
                if connection is not None:
                    connection.close()


def _sync(folder: str) -> None:
    """Make a rename durable if folders can be opened (not on Windows)."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _replaces(stated: str, kept: str, is_raised: bool) -> bool:
    """Return True if the newly stated budget replaces the kept budget."""
    return Fraction(stated) < Fraction(kept) or (is_raised and Fraction(stated) > Fraction(kept))
