"""Requests about a report, sent only through the relay that its study states (RFC 9458).

The relay sees who sends, when, and one size. The collector sees the content, and when the relay forwards it.
All data for this is stored durably with the report, so it leaves encapsulated or not at all.
"""

import urllib.request
from email.message import Message

from ldp_client.device.exchange import MOST_BYTES, Answer, exchange
from ldp_client.documents.errors import RefusedError, TransferError
from ldp_client.oblivious.binary_http import Answer as BinaryAnswer
from ldp_client.oblivious.binary_http import BinaryError, Request
from ldp_client.oblivious.encapsulation import (
    ANSWER_TYPE,
    REQUEST_TYPE,
    EncapsulationError,
    encapsulate,
)
from ldp_client.oblivious.sizes import request_bytes
from ldp_client.words.text import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Optional

    from ldp_client.documents.channel import Oblivious

    Exchange = Callable[[urllib.request.Request, int], Answer]

# The API's paths start with this, after the path of a collector's base URL.
API = "/v1/studies/"
# A gateway serves one collector. Its real address is left out, as it may be unique to this person.
AUTHORITY = "collector"
# An encapsulated request states its length and target elsewhere, and does not name the program.
LEFT_OUT = ("content-length", "host", "user-agent")
KEY_PROBLEM = b"http-problem-types#ohttp-key"
TEMPORARY = (408, 425, 429)


def way_of(oblivious: "Optional[Oblivious]", report_bytes: int) -> "Exchange":
    """Return the function that makes a report's requests. report_bytes: the size of its study's reports."""
    return exchange if oblivious is None else Relayed(oblivious, request_bytes(report_bytes)).exchange


class KeyGoneError(RefusedError):
    """The relay says that a deletion cannot reach the collector.

    Nothing proves it, so the deletion is retried. If it is true, no attempt succeeds until people have acted.
    """

    code = "device.relay_key_deletion"


class Relayed:
    """The way through one relay to one gateway's key. size: bytes of each request before encryption."""

    def __init__(self, oblivious: "Oblivious", size: int) -> None:
        self._relay = oblivious.relay
        self._key_id = oblivious.key_id
        self._public_key = oblivious.public_key
        self._size = size

    def exchange(self, request: urllib.request.Request, most: int = MOST_BYTES) -> Answer:  # noqa: ARG002
        """Return the collector's answer to a request. most: ignored, as all relayed answers have one size.

        Raises TransferError if another attempt may succeed, RefusedError if none will for a while.
        """
        try:
            asked = encapsulate(self._key_id, self._public_key, _binary(request).encode(self._size))
        except (BinaryError, UnicodeEncodeError):
            raise RefusedError.say("device.relay_too_long") from None
        headers = {"Content-Type": REQUEST_TYPE, "User-Agent": "ldpkit"}
        try:
            outer = exchange(urllib.request.Request(self._relay, asked.message, headers, method="POST"))
        except TransferError as error:
            # The request never reached the collector, which may well be up.
            raise TransferError.say("device.relay_away", relay=self._relay, reason=error) from None
        if outer.status != 200 or outer.headers.get_content_type() != ANSWER_TYPE:
            raise self._refusal(outer, request)
        try:
            return _plain(BinaryAnswer.decode(asked.open(outer.body)))
        except (EncapsulationError, BinaryError):
            raise RefusedError.say("device.relay_garbled", relay=self._relay) from None

    def _refusal(self, outer: Answer, request: urllib.request.Request) -> "TransferError | RefusedError":
        """Return the error for an answer that is not encapsulated. It proves nothing about the report."""
        if outer.status == 400 and KEY_PROBLEM in outer.body:
            if request.get_method() == "DELETE":
                # The report is stored elsewhere, perhaps for long. Only people can resolve this.
                report = request.full_url.rpartition("/")[2]
                return KeyGoneError(say("device.relay_key_deletion", relay=self._relay, report=report))
            return RefusedError.say("device.relay_key", relay=self._relay)
        text = say("device.relay_status", relay=self._relay, status=outer.status)
        is_temporary = outer.status >= 500 or outer.status in TEMPORARY
        return (
            TransferError(text, code="device.relay_failed")
            if is_temporary
            else RefusedError(text, code="device.relay_refused")
        )


def _binary(request: urllib.request.Request) -> Request:
    fields = [(name.lower(), value) for name, value in request.header_items()]
    path = API + request.full_url.rpartition(API)[2]
    content = request.data or b""
    assert isinstance(content, bytes)
    kept = [field for field in fields if field[0] not in LEFT_OUT]
    return Request(request.get_method(), AUTHORITY, path, kept, content)


def _plain(answer: BinaryAnswer) -> Answer:
    headers = Message()
    for name, value in answer.fields:
        headers[name] = value
    return Answer(answer.status, headers, answer.content)
