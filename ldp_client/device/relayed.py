"""Requests to a collector through a relay (RFC 9458), each encapsulated for the collector's gateway."""

from __future__ import annotations

import urllib.request
from email.message import Message
from typing import TYPE_CHECKING

from ldp_client.device.exchange import exchange
from ldp_client.device.transport import KeyGoneError
from ldp_client.documents.errors import RefusedError, TransferError
from ldp_client.oblivious.binary_http import Answer as BinaryAnswer
from ldp_client.oblivious.binary_http import BinaryError, Request, answer_bytes, padded
from ldp_client.oblivious.encapsulation import (
    ANSWER_OVERHEAD_BYTES,
    ANSWER_TYPE,
    REQUEST_TYPE,
    EncapsulationError,
    encapsulate,
)
from ldp_client.words.text import say

if TYPE_CHECKING:
    from ldp_client.device.exchange import Answer

# The API's paths start with this, after the path of a collector's base URL.
API = "/v1/studies/"
# A gateway serves one collector. Its real address is left out, as it may be unique to this person.
AUTHORITY = "collector"
# An encapsulated request states its length and target elsewhere, and does not name the program.
LEFT_OUT = ("content-length", "host", "user-agent")
KEY_PROBLEM = b"http-problem-types#ohttp-key"
TEMPORARY = (408, 425, 429)


def ask_through(relay: str, key_id: int, public_key: bytes, request: urllib.request.Request) -> Answer:
    """Return the collector's answer to a request that goes through a relay.

    Raises TransferError if another attempt may succeed, RefusedError if none will for a while.
    """
    try:
        asked = encapsulate(key_id, public_key, padded(_binary(request)))
    except (BinaryError, UnicodeEncodeError):
        raise RefusedError.say("device.relay_too_long") from None
    headers = {"Content-Type": REQUEST_TYPE, "User-Agent": "ldpkit"}
    most = answer_bytes(request.get_method()) + ANSWER_OVERHEAD_BYTES
    try:
        outer = exchange(urllib.request.Request(relay, asked.message, headers, method="POST"), most)
    except TransferError as error:
        # The request never reached the collector, which may well be up.
        raise TransferError.say("device.relay_away", relay=relay, reason=error) from None
    if outer.status != 200 or outer.headers.get_content_type() != ANSWER_TYPE:
        raise _refusal(relay, outer, request)
    try:
        return _plain(BinaryAnswer.decode(asked.open(outer.body)))
    except (EncapsulationError, BinaryError):
        raise RefusedError.say("device.relay_garbled", relay=relay) from None


def _refusal(relay: str, outer: Answer, request: urllib.request.Request) -> TransferError | RefusedError:
    """Return the error for an answer that is not encapsulated. It proves nothing about the report."""
    if outer.status == 400 and KEY_PROBLEM in outer.body:
        if request.get_method() == "DELETE":
            # The report is stored elsewhere, perhaps for long. Only people can resolve this.
            report = request.full_url.rpartition("/")[2]
            return KeyGoneError(say("device.relay_key_deletion", relay=relay, report=report))
        return RefusedError.say("device.relay_key", relay=relay)
    text = say("device.relay_status", relay=relay, status=outer.status)
    is_temporary = outer.status >= 500 or outer.status in TEMPORARY
    return (
        TransferError(text, code="device.relay_failed")
        if is_temporary
        else RefusedError(text, code="device.relay_refused")
    )


def _binary(request: urllib.request.Request) -> Request:
    fields = [(name.lower(), value) for name, value in request.header_items()]
    _, found, rest = request.full_url.partition(API)
    if not found:
        raise RefusedError.say("device.relay_elsewhere", url=request.full_url)
    path = API + rest
    content = request.data or b""
    assert isinstance(content, bytes)
    kept = [field for field in fields if field[0] not in LEFT_OUT]
    return Request(request.get_method(), AUTHORITY, path, kept, content)


def _plain(answer: BinaryAnswer) -> Answer:
    headers = Message()
    for name, value in answer.fields:
        headers[name] = value
    return Answer(answer.status, headers, answer.content)
