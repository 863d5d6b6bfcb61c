"""The ledger's tables, and the seal over their rows.

The seal is a SHA-256 over every row that decides what a device may do. SQLite notices damage only to its own
structure; the seal notices a changed, lost or restored row. It is not secret: it detects damage, not forgery,
nor the replacement of the whole file by an older one.
"""

import hashlib
import json
import sqlite3

from ldp_client.documents.errors import LedgerError

LAYOUT = 9

# origin: the origin of the study's collector, as in origins.py. secret: hexadecimal. version, document,
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


def digest_of(body: str) -> str:
    """Return the SHA-256 of a report's bytes, in hexadecimal digits."""
    return hashlib.sha256(body.encode("utf-8")).hexdigest()


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
