"""Requests about a report through the relay that its study states (RFC 9458), and never in any other way.

The relay sees who sends, when, and one size; the collector what is sent and when, from the relay. All that
this needs is durable with the report: whatever happens, it leaves encapsulated or not at all.
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

# The API's paths begin so, wherever a collector's base URL puts them.
API = "/v1/studies/"
# Behind a gateway is one collector. Its address may be one that this person alone was given.
AUTHORITY = "collector"
# The encapsulated request says its length and its target elsewhere, and nothing of the program.
LEFT_OUT = ("content-length", "host", "user-agent")
KEY_PROBLEM = b"http-problem-types#ohttp-key"
TEMPORARY = (408, 425, 429)


def way_of(oblivious: "Optional[Oblivious]", report_bytes: int) -> "Exchange":
    """How requests about a report are made. report_bytes: the report's, which its study's others have too."""
    return exchange if oblivious is None else Relayed(oblivious, request_bytes(report_bytes)).exchange


class KeyGoneError(RefusedError):
    """The relay says that a deletion cannot reach the collector. Nothing proves it: it is tried again, and
    where it is true no attempt does more until people have acted.
    """

    code = "device.relay_key_deletion"


class Relayed:
    """The way through one relay to one gateway's key. size: of each request, before it is encrypted."""

    def __init__(self, oblivious: "Oblivious", size: int) -> None:
        self._relay = oblivious.relay
        self._key_id = oblivious.key_id
        self._public_key = oblivious.public_key
        self._size = size

    def exchange(self, request: urllib.request.Request, most: int = MOST_BYTES) -> Answer:  # noqa: ARG002
        """The collector's answer to a request. most: as of `exchange`; all answers have one size here.

        Raises TransferError where another attempt may do, RefusedError where none will for a while.
        """
        try:
            asked = encapsulate(self._key_id, self._public_key, _binary(request).encode(self._size))
        except (BinaryError, UnicodeEncodeError):
            raise RefusedError.say("device.relay_too_long") from None
        headers = {"Content-Type": REQUEST_TYPE, "User-Agent": "ldpkit"}
        try:
            outer = exchange(urllib.request.Request(self._relay, asked.message, headers, method="POST"))
        except TransferError as error:
            # Nobody asked the collector, which may well be there.
            raise TransferError.say("device.relay_away", relay=self._relay, reason=error) from None
        if outer.status != 200 or outer.headers.get_content_type() != ANSWER_TYPE:
            raise self._refusal(outer, request)
        try:
            return _plain(BinaryAnswer.decode(asked.open(outer.body)))
        except (EncapsulationError, BinaryError):
            raise RefusedError.say("device.relay_garbled", relay=self._relay) from None

    def _refusal(self, outer: Answer, request: urllib.request.Request) -> "TransferError | RefusedError":
        """What an answer means that nobody encapsulated: nothing about the report, whoever gave it."""
        if outer.status == 400 and KEY_PROBLEM in outer.body:
            if request.get_method() == "DELETE":
                # The report is stored elsewhere, perhaps for long: only people can go on from there.
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
