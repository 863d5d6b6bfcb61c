"""The layout of a device's folder: its files, their permissions, and the tables of its ledger."""

from __future__ import annotations

import _thread
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

LAYOUT = 11
LEDGER_NAME = "ledger.sqlite3"
LOCK_NAME = "lock.sqlite3"
# The tables whose rows belong to an origin.
TABLES = ("reports", "spent", "permanent", "answered", "consents")
OWNER_ONLY = 0o600
OTHERS = 0o077

_making = _thread.allocate_lock()

# origin: the origin of the study's collector, as in policy.py. reports: nodes of a secure sum, with spaces
# between them; secret: hexadecimal; version, document, closes: the answered study's version, digest and last
# day; channel: how the study wants its reports to leave, as its document is not at hand then; "" for at once.
# permanent: noise is a digest of the permanent answer's law. answered: the latest version that was answered.
# tokens: of the reports; see tickets.py. budget: the lifetime budget that the device's owner stated, as a
# decimal: one row, once it was stated.
# seal: a SHA-256 over every row that decides what a device may do. SQLite notices damage only to its own
# structure; the seal notices a changed, lost or restored row. It is not secret: it detects damage, not
# forgery, nor the replacement of the whole file by an older one.
_SCHEMA = """
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
CREATE TABLE reports (
  id TEXT PRIMARY KEY, secret TEXT NOT NULL, nodes TEXT NOT NULL, origin TEXT NOT NULL,
  study TEXT NOT NULL, version INTEGER NOT NULL, document TEXT NOT NULL, closes TEXT NOT NULL,
  channel TEXT NOT NULL, state TEXT NOT NULL, due INTEGER NOT NULL, digest TEXT NOT NULL,
  body TEXT NOT NULL, ticket TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tokens (
  report TEXT PRIMARY KEY, key INTEGER NOT NULL, turned INTEGER NOT NULL, nonce TEXT NOT NULL,
  salt TEXT NOT NULL, factor TEXT NOT NULL, token TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE budget (id INTEGER PRIMARY KEY CHECK (id = 1), epsilon TEXT NOT NULL);
CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), digest TEXT NOT NULL);
INSERT INTO seal VALUES (1, '');
"""


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of an empty ledger."""
    for statement in _SCHEMA.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {LAYOUT}")


def make_private_file(path: str) -> None:
    """Create an empty file that only its owner can read, unless it exists. Raises OSError.

    An existing file is not opened: closing it would drop every lock that this process has on it (POSIX). For
    the same reason no other thread locks the file while it is created.
    """
    with _making, suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY))


def holds_device(folder: str) -> bool:
    """Return True if the folder belongs to a device, even if it lost its ledger or its lock."""
    kept = (LEDGER_NAME, LEDGER_NAME + "-journal", LOCK_NAME)
    return any([os.path.lexists(os.path.join(folder, name)) for name in kept])


def keep_private(path: str) -> None:
    """Restrict a device's file to its owner, whatever a copy or an installer made of its mode."""
    if os.name == "posix" and os.path.exists(path) and stat.S_IMODE(os.stat(path).st_mode) & OTHERS:
        with suppress(OSError):
            os.chmod(path, OWNER_ONLY)
