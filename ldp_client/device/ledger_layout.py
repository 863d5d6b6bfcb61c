"""The ledger's tables, how older ones become these, and the seal over their rows.

The seal is a SHA-256 over every row that decides what a device may do. SQLite notices damage to its
own structure only; the seal notices a row that was changed, lost or put back. It is no secret: it
finds damage, not a forger, and not a whole file that was replaced by an older one.
"""

import hashlib
import json
import sqlite3

from ldp_client.documents.errors import LedgerError

LAYOUT = 6

# publisher: whose study of that id, as known_studies.py has it; "" where it is not known: anybody's.
# secret: hexadecimal, "" of a report that was made before there were secrets. version, document, closes:
# of the study that was answered, its digest and its last day.
_REPORTS = """
CREATE TABLE reports (
  id TEXT PRIMARY KEY, secret TEXT NOT NULL, collector TEXT NOT NULL, publisher TEXT NOT NULL,
  study TEXT NOT NULL, version INTEGER NOT NULL, document TEXT NOT NULL, closes TEXT NOT NULL,
  state TEXT NOT NULL, due INTEGER NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL,
  invitation TEXT NOT NULL) WITHOUT ROWID;
"""

# Which collector, by its identity, serves a document at a base URL.
_COLLECTORS = """
CREATE TABLE publishers (
  document TEXT NOT NULL, collector TEXT NOT NULL, identity TEXT NOT NULL,
  PRIMARY KEY (document, collector)) WITHOUT ROWID;
"""

# words: of each text that the question was asked in, a digest; "" for any. With =, as in_clear.py marks it.
_ANSWERS = """
CREATE TABLE spent (
  study TEXT NOT NULL, publisher TEXT NOT NULL, question TEXT NOT NULL, version INTEGER NOT NULL,
  words TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL,
  PRIMARY KEY (study, publisher, question)) WITHOUT ROWID;
CREATE TABLE permanent (
  study TEXT NOT NULL, publisher TEXT NOT NULL, question TEXT NOT NULL, fingerprint TEXT NOT NULL,
  answer BLOB NOT NULL, PRIMARY KEY (study, publisher, question)) WITHOUT ROWID;
CREATE TABLE seen (
  study TEXT NOT NULL, publisher TEXT NOT NULL, version INTEGER NOT NULL, digest TEXT NOT NULL,
  key TEXT NOT NULL, PRIMARY KEY (study, publisher)) WITHOUT ROWID;
CREATE TABLE consents (
  study TEXT NOT NULL, publisher TEXT NOT NULL, digest TEXT NOT NULL, day TEXT NOT NULL,
  PRIMARY KEY (study, publisher)) WITHOUT ROWID;
"""

# How a study's reports leave, by its digest, and the bytes of each; the tokens that they leave with: see
# channels.py.
_CHANNELS = """
CREATE TABLE channels (
  document TEXT PRIMARY KEY, channel TEXT NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE tokens (
  report TEXT PRIMARY KEY, key INTEGER NOT NULL, turned INTEGER NOT NULL, nonce TEXT NOT NULL,
  salt TEXT NOT NULL, factor TEXT NOT NULL, token TEXT NOT NULL) WITHOUT ROWID;
"""

# What marks beside tables know the device by: one row, of a device that answered from a table.
_HOLDER = """
CREATE TABLE holder (id TEXT PRIMARY KEY) WITHOUT ROWID;
"""

_SEAL = """
CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), digest TEXT NOT NULL);
INSERT INTO seal VALUES (1, '');
"""

_FROM_1 = f"""
ALTER TABLE spent RENAME TO spent_1;
{_ANSWERS}{_REPORTS}{_COLLECTORS}{_CHANNELS}{_HOLDER}{_SEAL}
INSERT INTO spent SELECT study, '', question, version, '', epsilon, '0' FROM spent_1;
INSERT INTO reports SELECT report_id, '', collector, '', study, said(body, 'version'),
  said(body, 'digest'), '', 'trying', 0, sha256(body), body, '' FROM outbox;
INSERT INTO seen SELECT study, '', MAX(version), '', '' FROM spent_1 GROUP BY study;
DROP TABLE spent_1;
DROP TABLE outbox;
"""

# Older layouts did not keep whose study it was: all of it is anybody's, reports too, so that what is
# withdrawn here is either deleted at their collector or said to wait.
_OF_ANYBODY = f"""
ALTER TABLE spent RENAME TO old_spent;
ALTER TABLE permanent RENAME TO old_permanent;
ALTER TABLE seen RENAME TO old_seen;
ALTER TABLE consents RENAME TO old_consents;
ALTER TABLE reports RENAME TO old_reports;
{_ANSWERS}{_REPORTS}
INSERT INTO spent SELECT study, '', question, version, '', epsilon, delta FROM old_spent;
INSERT INTO permanent SELECT study, '', question, fingerprint, answer FROM old_permanent;
INSERT INTO seen SELECT study, '', version, digest, key FROM old_seen;
INSERT INTO consents SELECT study, '', digest, day FROM old_consents;
DROP TABLE old_spent;
DROP TABLE old_permanent;
DROP TABLE old_seen;
DROP TABLE old_consents;
"""

_FROM_2 = f"""
{_OF_ANYBODY}{_COLLECTORS}{_CHANNELS}{_HOLDER}
INSERT INTO reports SELECT id, '', collector, '', study, said(body, 'version'),
  said(body, 'digest'), '', state, due, digest, body, invitation FROM old_reports;
DROP TABLE old_reports;
"""

_FROM_3 = f"""
{_OF_ANYBODY}{_CHANNELS}{_HOLDER}
INSERT INTO reports SELECT id, secret, collector, '', study, version, document, closes,
  state, due, digest, body, invitation FROM old_reports;
DROP TABLE old_reports;
"""
_STEPS = {1: _FROM_1, 2: _FROM_2, 3: _FROM_3, 4: _CHANNELS + _HOLDER, 5: _HOLDER}

# A body has a digest of its own, checked when it is sent, so that the seal costs the same for any outbox.
_SEALED_4 = (
    "SELECT study, publisher, question, version, words, epsilon, delta FROM spent ORDER BY 1, 2, 3",
    "SELECT id, secret, collector, publisher, study, version, document, closes, state, due, digest, "
    "invitation FROM reports ORDER BY id",
    "SELECT document, collector, identity FROM publishers ORDER BY document, collector",
    "SELECT study, publisher, question, fingerprint, hex(answer) FROM permanent ORDER BY 1, 2, 3",
    "SELECT study, publisher, version, digest, key FROM seen ORDER BY 1, 2",
    "SELECT study, publisher, digest, day FROM consents ORDER BY 1, 2",
)
_SEALED_5 = (
    *_SEALED_4,
    "SELECT document, channel, size FROM channels ORDER BY document",
    "SELECT report, key, turned, nonce, salt, factor, token FROM tokens ORDER BY report",
)
_SEALED = (*_SEALED_5, "SELECT id FROM holder")
_SEALED_3 = (
    "SELECT study, question, version, epsilon, delta FROM spent ORDER BY study, question",
    "SELECT id, secret, collector, study, version, document, closes, state, due, digest, invitation "
    "FROM reports ORDER BY id",
    "SELECT document, collector, identity FROM publishers ORDER BY document, collector",
    "SELECT study, question, fingerprint, hex(answer) FROM permanent ORDER BY study, question",
    "SELECT study, version, digest, key FROM seen ORDER BY study",
    "SELECT study, digest, day FROM consents ORDER BY study",
)
_SEALED_2 = (
    _SEALED_3[0],
    "SELECT id, collector, study, state, due, digest, invitation FROM reports ORDER BY id",
    *_SEALED_3[3:],
)
# Layout 1 had no seal.
_OLDER_SEALS = {2: _SEALED_2, 3: _SEALED_3, 4: _SEALED_4, 5: _SEALED_5}


def layout_of(connection: sqlite3.Connection) -> int:
    """The layout's number; 0 for a file that no ledger has been written to."""
    number: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return number


def create_tables(connection: sqlite3.Connection) -> None:
    """An empty ledger, in one transaction."""
    _run(connection, _ANSWERS + _REPORTS + _COLLECTORS + _CHANNELS + _HOLDER + _SEAL)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring an older ledger to this layout, in one transaction. Raises LedgerError for a newer one."""
    found = layout_of(connection)
    if found == LAYOUT:
        return
    if found not in _STEPS:
        raise LedgerError.say("device.ledger_layout", found=found, known=LAYOUT)
    if found in _OLDER_SEALS:
        connection.execute("BEGIN")
        refuse_broken_seal(connection, _OLDER_SEALS[found])
        connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.create_function("sha256", 1, digest_of)
    connection.create_function("said", 2, _said)
    _run(connection, _STEPS[found])


def _run(connection: sqlite3.Connection, statements: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in statements.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {LAYOUT}")
    reseal(connection)
    connection.execute("COMMIT")


def _said(body: str, name: str) -> "str | int":
    """Read a field of a report's body; "" or 0 where the body is wiped, or is shares."""
    default: "str | int" = 0 if name == "version" else ""
    try:
        document = json.loads(body)
    except ValueError:
        return default
    found: "str | int" = document.get(name, default) if isinstance(document, dict) else default
    return found


def digest_of(body: str) -> str:
    """SHA-256 of a report's bytes, in hexadecimal digits."""
    return hashlib.sha256(body.encode("utf-8")).hexdigest()


def reseal(connection: sqlite3.Connection) -> None:
    """Write the seal of the rows as they are."""
    connection.execute("UPDATE seal SET digest = ?", (_seal_of(connection),))


def refuse_broken_seal(connection: sqlite3.Connection, sealed: "tuple[str, ...]" = _SEALED) -> None:
    """Raises LedgerError unless every row is as it was written."""
    found = connection.execute("SELECT digest FROM seal").fetchall()
    if found != [(_seal_of(connection, sealed),)]:
        raise LedgerError.say("device.ledger_changed")


def refuse_damage(connection: sqlite3.Connection) -> None:
    """Raises LedgerError for another layout, a broken structure or a broken seal."""
    found = layout_of(connection)
    if found != LAYOUT:
        raise LedgerError.say("device.ledger_layout", found=found, known=LAYOUT)
    if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        raise LedgerError.say("device.ledger_damaged")
    refuse_broken_seal(connection)


def _seal_of(connection: sqlite3.Connection, sealed: "tuple[str, ...]" = _SEALED) -> str:
    rows = [connection.execute(query).fetchall() for query in sealed]
    # repr for bytes: damage can turn a text into a blob, which is then no text of any row.
    return digest_of(json.dumps(rows, default=repr))
