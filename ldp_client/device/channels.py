"""How reports leave if their study wants them unlinkable: the ledger's channels, windows and tokens.

A report first gets its token from the issuer, who knows the person. In another window it leaves with the
token, which identifies no person. Each request's contents are durable before the request leaves, so a lost
answer is requested again with the same contents. Once the token arrives, blinding and invitation are deleted:
then nothing on this device links the two.
"""

from __future__ import annotations

import json
import sqlite3
from binascii import hexlify, unhexlify
from typing import TYPE_CHECKING

from ldp_client.core.randomness import urandom
from ldp_client.core.tokens import draw
from ldp_client.device.clock import HOUR, in_next_window
from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.channel import CHANNEL, Channel, Tokens
from ldp_client.documents.errors import StudyError
from ldp_client.documents.study import Study

if TYPE_CHECKING:
    from ldp_client.device.ledger import Ledger
    from ldp_client.device.outbox import Queued

_COLUMNS = "key, turned, nonce, salt, factor"
_WAITS = "state IN ('queued', 'trying')"


class Held:
    """A report's request for a token.

    key: which of the study's keys. turned: how the issuer named that key, 0 if it did not. nonce, salt,
    factor: hexadecimal digits.
    """

    def __init__(self, key: int, turned: int, nonce: str, salt: str, factor: str) -> None:
        self.key = key
        self.turned = turned
        self.nonce = nonce
        self.salt = salt
        self.factor = factor


class Channels:
    """The channels of all reports of a ledger, as they were when read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        rows = connection.execute("SELECT document, channel FROM channels").fetchall()
        self._of_document = {document: _read(channel) for document, channel in rows}
        held = connection.execute("SELECT report, token FROM tokens").fetchall()
        self._asked = {report for report, _ in held}
        self._tokens = {report: token for report, token in held if token}

    def of(self, report: Queued) -> Channel | None:
        """Return how the report's study wants it to leave, None if the study does not say."""
        return self._of_document.get(report.document)

    def token(self, report: Queued) -> bytes:
        """Return the report's token, b"" before it arrives."""
        return unhexlify(self._tokens.get(report.report_id, ""))

    def awaits_token(self, report: Queued) -> bool:
        """Return True if the report still has to request a token."""
        channel = self.of(report)
        return channel is not None and channel.tokens is not None and report.report_id not in self._tokens

    def asks_token(self, report: Queued) -> bool:
        """Return True if its next request shows the person's invitation to an issuer."""
        return bool(report.body and report.invitation) and self.awaits_token(report)

    def has_asked(self, report: Queued) -> bool:
        """Return True if a token was requested, though perhaps not given."""
        return report.report_id in self._asked

    def longest_wait(self, report: Queued) -> int:
        """Return the most seconds until the report's time, 0 for a report that leaves alone."""
        channel = self.of(report)
        return 0 if channel is None else 2 * channel.hours * HOUR


def _read(channel: str) -> Channel:
    return Channel(CHANNEL.read(json.loads(channel), "channel", StudyError))


def note_channel(connection: sqlite3.Connection, study: Study) -> None:
    """Store how a study's reports leave, as its document is not at hand then."""
    if study.channel is not None:
        row = (study.digest, canonical_json(study.document["channel"]))
        connection.execute("INSERT OR REPLACE INTO channels VALUES (?, ?)", row)


def postpone(connection: sqlite3.Connection, report_id: str, hours: int) -> None:
    """Move a report that could not be sent, or its deletion, to the next window."""
    query = f"UPDATE reports SET due = ? WHERE id = ? AND ({_WAITS} OR state = 'withdrawn')"
    connection.execute(query, (in_next_window(hours), report_id))


def forget_tokens(connection: sqlite3.Connection) -> None:
    """Delete the tokens and token requests of reports that will not be sent any more."""
    waiting = f"SELECT id FROM reports WHERE {_WAITS}"
    connection.execute(f"DELETE FROM tokens WHERE report NOT IN ({waiting})")


def prepared(
    ledger: Ledger,
    report: Queued,
    tokens: Tokens,
    bound: bytes,
    other: tuple[int, int] | None = None,
) -> Held | None:
    """Return the report's durable token request, old or new; None if the report no longer waits.

    bound: the token's nonce, b"" for a random nonce. other: the key that the issuer named, and how.
    """
    with ledger.writing() as connection:
        query = f"SELECT {_COLUMNS} FROM tokens WHERE report = ?"
        row = connection.execute(query, (report.report_id,)).fetchone()
        if row is None or other is not None:
            key, turned = other or (0, 0)
            nonce, salt, factor = draw(tokens.keys[key], urandom)
            secrets = (hexlify(bound or nonce).decode(), hexlify(salt).decode(), f"{factor:x}")
            row = (key, turned, *secrets)
            # Skip a report that was withdrawn meanwhile.
            query = f"""INSERT OR REPLACE INTO tokens SELECT id, ?, ?, ?, ?, ?, '' FROM reports
              WHERE id = ? AND {_WAITS}"""
            if connection.execute(query, (*row, report.report_id)).rowcount != 1:
                return None
    return Held(*row)


def keep_token(connection: sqlite3.Connection, report_id: str, token: bytes, hours: int) -> None:
    """Store a token, delete its request and draw when the report leaves; skip a withdrawn report."""
    given = "token = ?, nonce = '', salt = '', factor = ''"
    connection.execute(f"UPDATE tokens SET {given} WHERE report = ?", (hexlify(token).decode(), report_id))
    query = f"UPDATE reports SET due = ?, invitation = '' WHERE id = ? AND {_WAITS}"
    connection.execute(query, (in_next_window(hours), report_id))
    forget_tokens(connection)
