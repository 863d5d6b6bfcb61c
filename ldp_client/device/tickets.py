"""The tokens with which reports leave: requested from their study's issuer with the person's ticket.

A report first gets its token from the issuer, who knows the person. In another window it leaves with the
token, which identifies no person. Each request's contents are durable before the request leaves, so a lost
answer is requested again with the same contents. Once the token arrives, blinding and ticket are deleted:
then nothing on this device links the two.

Only the signature of a key that the study names makes a token. Any other answer leaves the report as it was.
"""

from __future__ import annotations

import sqlite3
import urllib.request
from binascii import hexlify, unhexlify
from typing import TYPE_CHECKING, NamedTuple

from ldp_client.core.randomness import urandom
from ldp_client.core.tokens import REQUEST_TYPE, RESPONSE_TYPE, Asking, challenge_of, draw, short_id_of
from ldp_client.device import outbox
from ldp_client.device.http import MOST_CHARACTERS
from ldp_client.device.requests import Outcome, pause_of, strange
from ldp_client.device.shares import nonce_for
from ldp_client.documents.channel import Channel, Tickets
from ldp_client.documents.errors import TransferError
from ldp_client.documents.fields import printable
from ldp_client.words.text import say

if TYPE_CHECKING:
    from ldp_client.device.http import Answer
    from ldp_client.device.ledger import Ledger
    from ldp_client.device.outbox import Queued
    from ldp_client.device.transport import Transport

TOKEN_PATH = "/v1/tokens"
# How the issuer named the key to use.
BY_PLACE, BY_ID = 1, 2
_COLUMNS = "key, turned, nonce, salt, factor"


class Held(NamedTuple):
    """A report's request for a token.

    key: which of the study's keys. turned: how the issuer named that key, 0 if it did not. nonce, salt,
    factor: hexadecimal digits.
    """

    key: int
    turned: int
    nonce: str
    salt: str
    factor: str

    def __repr__(self) -> str:
        return f"Held({self.key}, {self.turned})"  # without the blinding


def prepared(
    ledger: Ledger,
    report: Queued,
    tickets: Tickets,
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
            nonce, salt, factor = draw(tickets.keys[key], urandom)
            secrets = (hexlify(bound or nonce).decode(), hexlify(salt).decode(), f"{factor:x}")
            row = (key, turned, *secrets)
            # Skip a report that was withdrawn meanwhile.
            query = f"""INSERT OR REPLACE INTO tokens SELECT id, ?, ?, ?, ?, ?, '' FROM reports
              WHERE id = ? AND {outbox.WAITS}"""
            if connection.execute(query, (*row, report.report_id)).rowcount != 1:
                return None
    return Held(*row)


def keep_token(connection: sqlite3.Connection, report_id: str, token: bytes, hours: int) -> None:
    """Store a token, delete its request and draw when the report leaves; skip a withdrawn report."""
    given = "token = ?, nonce = '', salt = '', factor = ''"
    connection.execute(f"UPDATE tokens SET {given} WHERE report = ?", (hexlify(token).decode(), report_id))
    query = f"UPDATE reports SET due = ?, ticket = '' WHERE id = ? AND {outbox.WAITS}"
    connection.execute(query, (outbox.in_next_window(hours), report_id))
    outbox.forget_tokens(connection)


def ask_token(transport: Transport, ledger: Ledger, report: Queued, channel: Channel) -> Outcome:
    """Request a report's token once, and once more with another key if the issuer names one.

    The outcome is "sent" once the token is stored and the report's time is drawn.
    """
    tickets = channel.tickets
    assert tickets is not None
    if not report.ticket:
        return Outcome("kept", say("device.no_ticket"))
    try:
        bound = nonce_for(report)
        held = prepared(ledger, report, tickets, bound)
        answer = _ask(transport, report, tickets, held) if held else None
        other = _other_key(answer, tickets, held) if held and answer else None
        if other is not None:
            held = prepared(ledger, report, tickets, bound, other)
            answer = _ask(transport, report, tickets, held) if held else None
    except TransferError as error:
        return Outcome("waiting", say("device.no_issuer", reason=error))
    if held is None or answer is None:
        return Outcome("withdrawn")
    if answer.status != 200 or answer.media_type != RESPONSE_TYPE:
        return _refusal(answer, tickets)
    token = _asking(report, tickets, held).token(answer.body, urandom)
    if token is None:
        return Outcome("kept", say("device.token_unsigned", issuer=tickets.name))
    with ledger.writing() as connection:
        keep_token(connection, report.report_id, token, channel.hours)
    return Outcome("sent")


def _asking(report: Queued, tickets: Tickets, held: Held) -> Asking:
    challenge = challenge_of(tickets.name, report.document)
    secrets = (unhexlify(held.nonce), unhexlify(held.salt), int(held.factor, 16))
    return Asking(tickets.keys[held.key], challenge, *secrets)


def _ask(transport: Transport, report: Queued, tickets: Tickets, held: Held) -> Answer:
    """Return the issuer's answer. Raises TransferError."""
    headers = {"Content-Type": REQUEST_TYPE, "Accept": RESPONSE_TYPE, "User-Agent": "ldpkit"}
    headers["LDPKit-Ticket"] = report.ticket
    body = _asking(report, tickets, held).body
    request = urllib.request.Request(tickets.issuer + TOKEN_PATH, body, headers, method="POST")
    return transport.exchange(request)


def _other_key(answer: Answer, tickets: Tickets, held: Held) -> tuple[int, int] | None:
    """Return the study's key that the issuer names instead of the requested key, and how it was named.

    It is followed once per report: an issuer that keeps naming keys could tell people apart. A second time is
    allowed only from a place (the issuer's own count) to a key id, as the place may have been wrong.
    """
    if answer.status != 409 or answer.problem != "token-key-other":
        return None
    document = answer.document
    by_id = document.get("key_id")
    ids = _ids_of(tickets)
    named = document.get("key") if by_id is None else ids.index(by_id) if by_id in ids else None
    if not isinstance(named, int) or isinstance(named, bool) or not 0 <= named < len(tickets.keys):
        return None
    turned = BY_PLACE if by_id is None else BY_ID
    return (named, turned) if named != held.key and held.turned < turned else None


def _ids_of(tickets: Tickets) -> list[int]:
    return [short_id_of(key.spki) for key in tickets.keys]


def _refusal(answer: Answer, tickets: Tickets) -> Outcome:
    """Return the outcome of the issuer's refusal.

    No refusal is final: the person may get another ticket, or withdraw the report.
    """
    document, problem = answer.document, answer.problem
    key_id = document.get("key_id")
    if problem is None:
        return Outcome(pause_of(answer.status), strange(answer))
    if problem in ("ticket-needed", "ticket-invalid"):
        return Outcome("kept", say("device.ticket_unknown"))
    if problem == "ticket-spent":
        return Outcome("stuck", say("device.ticket_spent"))
    if problem == "token-key-unknown":
        return Outcome("stuck", say("device.ticket_key"))
    if problem == "token-key-other" and isinstance(key_id, int) and key_id not in _ids_of(tickets):
        # The key of a stratum that the study omits.
        return Outcome("stuck", say("device.ticket_stratum"))
    detail = printable(document.get("detail", ""), MOST_CHARACTERS)
    reason = say("device.problem", status=answer.status, problem=problem, detail=detail)
    return Outcome(pause_of(answer.status), reason)
