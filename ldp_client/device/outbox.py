"""The reports of a device, from perturbation to deletion, and when each of them leaves.

A report is "queued" until its first attempt, then "trying" until the collector has taken it, then "sent", or
"refused" if it is permanently rejected. A sent or refused report loses its body but keeps its id, so its
deletion can still be requested. Refused reports are included, as an earlier attempt or a share may have
arrived. The deletion of "withdrawn" reports is requested until the collector confirms it.

A study's channel may ask that its reports leave together with others, so that none can be linked to a person.
Then each request leaves at a random moment of a window, and tickets.py requests the reports' tokens.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ldp_client.device.transport import Direct
from ldp_client.documents.errors import LedgerError, RefusedError, StudyError

if TYPE_CHECKING:
    import sqlite3
    from datetime import date

    from ldp_client.documents.channel import Channel
    from ldp_client.documents.report import Report
    from ldp_client.documents.study import Study

HOUR = 3600
MOST_PENDING = 500
MOST_BYTES = Direct.most_report_bytes
WAITS = "state IN ('queued', 'trying')"
# Reports whose study uses tokens: a report gets its token before its own moment is drawn.
_AWAITS = """channel LIKE '%"tickets"%'"""
_SELECTED = "id, nodes, study, body, due, ticket, secret, version, document, closes, origin, channel, token"


class Queued(NamedTuple):
    """A report that waits to be sent: its id, nodes, study's id, exact bytes and due time.

    node_urls: the base URLs of a secure sum's nodes, with spaces between them; "" for a report to a
    collector. due: seconds since 1970, 0 for at once. ticket: for a study that takes invited reports only.
    secret: the hexadecimal digits that a deletion must present.
    version, document, closes: the answered study's version, digest and last day ("" for none). origin: of the
    study's collector, "" if it was not known. stated_channel: how the study wants it to leave, as JSON; ""
    for at once. token_text: its token in hexadecimal digits, "" if it was requested, else None. A report
    whose deletion is requested has no body.
    """

    report_id: str
    node_urls: str
    study: str
    body: str
    due: int = 0
    ticket: str = ""
    secret: str = ""
    version: int = 0
    document: str = ""
    closes: str = ""
    origin: str = ""
    stated_channel: str = ""
    token_text: str | None = None

    @classmethod
    def of(cls, study: Study, report: Report, body: str, ticket: str, origin: str) -> Queued:
        """Return a fresh report, as it will leave."""
        from ldp_client.documents.canonical import canonical_json

        nodes = " ".join([node.url for node in study.protocol.nodes]) if study.protocol is not None else ""
        due, stated, channel = 0, "", study.channel
        if channel is not None:
            stated = canonical_json(study.document["channel"])
            # The arrival of its token draws another report's time.
            due = 0 if channel.tickets else in_next_window(channel.hours)
        asked = (study.version, study.digest, study.closes or "", origin, stated)
        return cls(report.id, nodes, study.id, body, due, ticket, report.secret.hex(), *asked)

    @property
    def nodes(self) -> list[str]:
        """Return the nodes of a secure sum; empty for a report that goes to one collector."""
        return self.node_urls.split()

    @property
    def channel(self) -> Channel | None:
        """Return how the report's study wants it to leave, None for at once."""
        return _channel_of(self.stated_channel) if self.stated_channel else None

    @property
    def token(self) -> bytes:
        """Return the report's token, b"" before it arrives."""
        return bytes.fromhex(self.token_text or "")

    @property
    def awaits_token(self) -> bool:
        """Return True if the report still has to request a token before it is sent."""
        channel = self.channel
        return bool(self.body and channel is not None and channel.tickets and not self.token_text)

    def __repr__(self) -> str:
        # Logs and error reports show this: no body, secret, ticket or id.
        return f"Queued({self.study!r}, version {self.version})"


def digest_of(body: str) -> str:
    """Return the SHA-256 of a report's bytes, in hexadecimal digits."""
    from hashlib import sha256

    return sha256(body.encode("utf-8")).hexdigest()


def plain_ticket(given: str) -> str:
    """Return a ticket without blanks, quotes and dashes from the letter it was copied from.

    A header could not hold them. For a whole link, return the ticket that it carries, as `readTicket`
    of js/changing.js does.
    """
    text = "".join([character for character in given if "!" <= character <= "~"])
    return text.rpartition("#ticket=")[2].strip("\"'<>()[],.;:`")


def now() -> float:
    """Return the seconds since 1970, UTC."""
    return time.time()


def today() -> date:
    """Return the day by this device's clock."""
    from datetime import date

    return date.today()


def in_next_window(hours: int) -> int:
    """Return a second drawn evenly from the next window.

    Windows last `hours` hours each, counted from 1970, UTC.
    """
    share = int.from_bytes(os.urandom(6), "big") / (1 << 48)
    return int((now() // (hours * HOUR) + 1 + share) * hours * HOUR)


@lru_cache(maxsize=16)
def _channel_of(text: str) -> Channel:
    import json  # needed only to send: answering parses nothing

    from ldp_client.documents.channel import CHANNEL, Channel

    return Channel(CHANNEL.read(json.loads(text), "channel", StudyError))


def refuse_full(connection: sqlite3.Connection) -> None:
    """Raise RefusedError if as many reports wait as a device may hold."""
    query = f"SELECT COUNT(*) FROM reports WHERE {WAITS}"
    if connection.execute(query).fetchone()[0] >= MOST_PENDING:
        raise RefusedError(
            f"{MOST_PENDING} reports wait to be sent: flush the device first", code="device.outbox_full"
        )


def enqueue(connection: sqlite3.Connection, report: Queued, most: int) -> None:
    """Add a report. Raises RefusedError if it is larger than `most` bytes, and so too large to send."""
    size = len(report.body.encode())
    if size > most:
        raise RefusedError(
            f"the report would have {size} bytes, but at most {most} are allowed",
            code="device.report_large",
        )
    digest = digest_of(report.body)
    whose = (report.report_id, report.secret, report.node_urls, report.origin)
    asked = (report.study, report.version, report.document, report.closes, report.stated_channel)
    row = (*whose, *asked, "queued", report.due, digest, report.body, report.ticket)
    connection.execute(f"INSERT INTO reports VALUES ({', '.join('?' * len(row))})", row)


def give_ticket(connection: sqlite3.Connection, study_id: str, ticket: str) -> None:
    """Give one of the study's waiting reports another ticket, as it admits one: the latest version's.

    A report without a ticket comes first. Nothing changes if a waiting report already has that
    ticket. "" removes the tickets of all waiting reports.
    """
    has_token = "id IN (SELECT report FROM tokens WHERE token <> '')"
    waiting = f"study = ? AND is_own(origin) AND {WAITS} AND NOT {has_token}"
    query = f"SELECT id, ticket FROM reports WHERE {waiting} ORDER BY ticket = '' DESC, version DESC"
    rows = connection.execute(query, (study_id,)).fetchall()
    given = [] if ticket in [kept for _, kept in rows] else rows[:1]
    for report_id, _ in given if ticket else rows:
        connection.execute("UPDATE reports SET ticket = ? WHERE id = ?", (ticket, report_id))
        # A postponed token request now uses another ticket.
        connection.execute(f"UPDATE reports SET due = 0 WHERE id = ? AND {_AWAITS}", (report_id,))
        # The new ticket may be of another stratum: the issuer may name its key.
        connection.execute("UPDATE tokens SET turned = 0 WHERE report = ?", (report_id,))


def pending(connection: sqlite3.Connection) -> list[Queued]:
    """Return the reports that wait to be sent, in the random order of their ids. Raises LedgerError."""
    return _select(connection, WAITS)


def withdrawn(connection: sqlite3.Connection) -> list[Queued]:
    """Return the reports whose deletion is not acknowledged yet."""
    return _select(connection, "state = 'withdrawn'")


def _select(connection: sqlite3.Connection, which: str) -> list[Queued]:
    tables = "reports LEFT JOIN tokens ON report = id"
    query = f"SELECT {_SELECTED}, digest FROM {tables} WHERE {which} ORDER BY id"
    rows = connection.execute(query).fetchall()
    if any([not isinstance(row[3], str) or digest_of(row[3]) != row[-1] for row in rows]):
        raise LedgerError(
            "the ledger is damaged: a report differs from the report that was written",
            code="device.report_changed",
        )
    return [Queued(*row[:-1]) for row in rows]


def try_now(connection: sqlite3.Connection, report_id: str) -> bool:
    """Note that the report may leave from now on; return False if it was withdrawn meanwhile."""
    query = f"UPDATE reports SET state = 'trying' WHERE id = ? AND {WAITS}"
    return connection.execute(query, (report_id,)).rowcount == 1


def conclude(connection: sqlite3.Connection, report_id: str, state: str) -> None:
    """Note that the collector has the report ("sent"), or that it is not sent again ("refused").

    Only its id is kept. Nothing changes if it was withdrawn meanwhile.
    """
    wiped = "state = ?, due = 0, digest = ?, body = '', ticket = ''"
    query = f"UPDATE reports SET {wiped} WHERE id = ? AND state = 'trying'"
    connection.execute(query, (state, digest_of(""), report_id))
    forget_tokens(connection)


def note_undeletable(connection: sqlite3.Connection, report_id: str) -> None:
    """Note that a sum's nodes keep the report. Its deletion is requested only if it is withdrawn again."""
    query = "UPDATE reports SET state = 'sent', due = 0 WHERE id = ? AND state = 'withdrawn'"
    connection.execute(query, (report_id,))


def drop(connection: sqlite3.Connection, report_id: str) -> None:
    """Delete a report that a collector has deleted; its spend stays."""
    connection.execute("DELETE FROM reports WHERE id = ?", (report_id,))


def withdraw_reports(connection: sqlite3.Connection, study_id: str) -> int:
    """Wipe the study's reports. Return how many may have left and so must be deleted.

    A deletion leaves as the report did: alone it would reveal whose report it was.
    """
    its = "study = ? AND is_own(origin)"
    connection.execute(f"DELETE FROM reports WHERE {its} AND state = 'queued'", (study_id,))
    # A deletion that is already pending keeps its time, however often the person withdraws.
    asked = {report.report_id for report in withdrawn(connection)}
    connection.execute(f"UPDATE reports SET due = 0 WHERE {its} AND state <> 'withdrawn'", (study_id,))
    wiped = "state = 'withdrawn', digest = ?, body = '', ticket = ''"
    query = f"UPDATE reports SET {wiped} WHERE {its}"
    count = connection.execute(query, (digest_of(""), study_id)).rowcount
    forget_tokens(connection)
    for report in withdrawn(connection):
        if report.report_id not in asked and report.channel is not None:
            postpone(connection, report.report_id, report.channel.hours)
    return count


def postpone(connection: sqlite3.Connection, report_id: str, hours: int) -> None:
    """Move a report that could not be sent, or its deletion, to the next window."""
    query = f"UPDATE reports SET due = ? WHERE id = ? AND ({WAITS} OR state = 'withdrawn')"
    connection.execute(query, (in_next_window(hours), report_id))


def forget_tokens(connection: sqlite3.Connection) -> None:
    """Delete the tokens and token requests of reports that will not be sent any more."""
    waiting = f"SELECT id FROM reports WHERE {WAITS}"
    connection.execute(f"DELETE FROM tokens WHERE report NOT IN ({waiting})")
