"""The tokens with which reports leave: requested from their study's issuer with the person's ticket.

A report first gets its token from the issuer, who knows the person. In another window it leaves with the
token, which identifies no person. Each request's contents are durable before the request leaves, so a lost
answer is requested again with the same contents. Once the token arrives, blinding and ticket are deleted:
then nothing on this device links the two.

Only the signature of a key that the study names makes a token. Any other answer leaves the report as it was.
"""

import urllib.request

from ldp_client.core.randomness import urandom
from ldp_client.core.tokens import REQUEST_TYPE, RESPONSE_TYPE, Asking, challenge_of, draw, short_id_of
from ldp_client.device import outbox
from ldp_client.device.ledger import Ledger
from ldp_client.device.outbox import Queued
from ldp_client.device.requests import Outcome, unsettled
from ldp_client.device.shares import nonce_for
from ldp_client.device.transport import Transport
from ldp_client.documents.channel import Channel, Tickets
from ldp_client.documents.errors import TransferError

TOKEN_PATH = "/v1/tokens"


def prepared(
    ledger: Ledger, report: Queued, tickets: Tickets, other: int | None = None
) -> tuple[Asking, int, bool] | None:
    """Return the report's durable token request, old or new; None if the report no longer waits.

    The second value is which of the study's keys it is for, the third is True if the issuer named that key.
    other: the key that the issuer named, for a new request.
    """
    with ledger.writing() as connection:
        query = "SELECT key, turned, nonce, salt, factor FROM tokens WHERE report = ?"
        row = connection.execute(query, (report.report_id,)).fetchone()
        if row is None or other is not None:
            nonce, salt, factor = draw(tickets.keys[other or 0], urandom)
            secrets = ((nonce_for(report) or nonce).hex(), salt.hex(), f"{factor:x}")
            row = (other or 0, int(other is not None), *secrets)
            # Skip a report that was withdrawn meanwhile.
            query = f"""INSERT OR REPLACE INTO tokens SELECT id, ?, ?, ?, ?, ?, '' FROM reports
              WHERE id = ? AND {outbox.WAITS}"""
            if connection.execute(query, (*row, report.report_id)).rowcount != 1:
                return None
    key, turned, digits, salt_digits, factor_digits = row
    blinding = (bytes.fromhex(digits), bytes.fromhex(salt_digits), int(factor_digits, 16))
    challenge = challenge_of(tickets.name, report.document)
    return Asking(tickets.keys[key], challenge, *blinding), key, bool(turned)


def ask_token(transport: Transport, ledger: Ledger, report: Queued, channel: Channel) -> Outcome:
    """Request a report's token once, and once more with another key if the issuer names one.

    The outcome is "sent" once the token is stored and the report's time is drawn.
    """
    tickets = channel.tickets
    assert tickets is not None
    if not report.ticket:
        return Outcome(
            "kept", "the study accepts one report a person: give the ticket that the issuer of tickets knows"
        )
    # 1. Ask.
    ids = [short_id_of(key.spki) for key in tickets.keys]
    other: int | None = None
    while True:
        request = prepared(ledger, report, tickets, other)
        if request is None:
            return Outcome("withdrawn")
        asking, key, is_named = request
        headers = {"Content-Type": REQUEST_TYPE, "Accept": RESPONSE_TYPE, "User-Agent": "ldpkit"}
        headers["LDPKit-Ticket"] = report.ticket
        url = tickets.issuer + TOKEN_PATH
        try:
            answer = transport.exchange(urllib.request.Request(url, asking.body, headers, method="POST"))
        except TransferError as error:
            return Outcome("waiting", f"cannot reach the issuer of tickets: {error}")
        # The study's key that the issuer names by its id instead of the requested key. It is followed once
        # per report: an issuer that keeps naming keys could tell people apart.
        named = answer.document.get("key_id")
        is_other = answer.status == 409 and answer.problem == "token-key-other" and named != ids[key]
        if is_named or not is_other or named not in ids:
            break
        other = ids.index(named)
    # 2. Take only the signature of a key that the study names. No refusal is final: the person may get
    # another ticket, or withdraw the report.
    if answer.status != 200 or answer.media_type != RESPONSE_TYPE:
        is_omitted = answer.problem == "token-key-other" and named not in ids
        advice = OMITTED if is_omitted else REFUSALS.get(answer.problem or "")
        return Outcome("kept", advice) if advice else unsettled(answer)
    token = asking.token(answer.body, urandom)
    if token is None:
        return Outcome(
            "kept",
            f"the issuer {tickets.name} did not sign with the study's key: the report waits, without a token",
        )
    # 3. Store it, delete its request, and draw when the report leaves. Skip a withdrawn report.
    with ledger.writing() as connection:
        given = "token = ?, nonce = '', salt = '', factor = ''"
        connection.execute(f"UPDATE tokens SET {given} WHERE report = ?", (token.hex(), report.report_id))
        query = f"UPDATE reports SET due = ?, ticket = '' WHERE id = ? AND {outbox.WAITS}"
        connection.execute(query, (outbox.in_next_window(channel.hours), report.report_id))
        outbox.forget_tokens(connection)
    return Outcome("sent")


# What a person should do about an issuer's refusal.
UNKNOWN = "the issuer of tickets does not know this ticket: give the ticket that you were sent"
SPENT = (
    "this ticket was answered before: in an earlier version of the study (each needs a new ticket), from "
    "another device, or from this device before it lost its data. Its issuer gives no second token for "
    "it. Your report is still here. Ask the person who invited you for a new ticket, or withdraw, which "
    "drops the report"
)
OMITTED = (
    "the study names no key for your ticket's group, and no report of that group can ever leave. Your "
    "report is still here. Ask the person who invited you, or withdraw, which drops it"
)
REFUSALS = {
    "ticket-needed": UNKNOWN,
    "ticket-invalid": UNKNOWN,
    "ticket-spent": SPENT,
    "token-key-unknown": (
        "the study states a key that its issuer does not have for this ticket: ask the study's contact"
    ),
}
