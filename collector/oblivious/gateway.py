"""Turn an encapsulated request into the collector's answer and encapsulate it: gateway and target in one.

The inner request may only do what a device does: send or delete its report and fetch a study. It reaches no
operator's route and no second gateway. An answer's size depends on the request's method, never on the result.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from contextvars import Context
from email.utils import formatdate
from io import BytesIO
from typing import TYPE_CHECKING, Any

from collector.db import problem_of
from collector.oblivious.keys import GatewayKeys
from collector.problems import (
    ANSWER_TOO_LARGE,
    MEDIA_TYPE,
    OBLIVIOUS_REQUEST,
    OBLIVIOUS_ROUTE,
    OHTTP_KEY,
    OHTTP_MALFORMED,
    ProblemError,
)
from ldp_client.oblivious.binary_http import ANSWER_BYTES, Answer, BinaryError, Request, answer_bytes
from ldp_client.oblivious.encapsulation import (
    HEADER_BYTES,
    EncapsulationError,
    Received,
    decapsulate,
    header,
    require_hpke,
)

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication

REPORT = re.compile(r"/v1/studies/[a-z0-9][a-z0-9._-]{0,63}/reports/[0-9a-f]{32}")
STUDY = re.compile(r"/v1/studies/[a-z0-9][a-z0-9._-]{0,63}(/signed)?(\?version=[0-9]{1,7})?")
ROUTES = {"PUT": REPORT, "DELETE": REPORT, "GET": STUDY}
# Header fields that devices send. An operator's key in a device's request is refused: see _fields_of.
SENT = frozenset(("authorization", "content-type", "if-none-match", "ldpkit-ticket", "ldpkit-withdrawal"))
# A request with these fields cannot be a message in one piece (RFC 9110, sections 7.6 and 8).
REFUSED = frozenset(
    ("connection", "content-encoding", "expect", "keep-alive", "proxy-authorization", "proxy-connection")
) | frozenset(("te", "trailer", "transfer-encoding", "upgrade"))
TOKEN_SCHEME = "privatetoken "
RETURNED = frozenset(
    ("content-type", "etag", "ldpkit-collector", "ldpkit-study", "retry-after", "www-authenticate")
)
SERVER: Mapping[str, Any] = {
    "SCRIPT_NAME": "",
    "SERVER_NAME": "oblivious",
    "SERVER_PORT": "443",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "wsgi.version": (1, 0),
    "wsgi.url_scheme": "https",
    "wsgi.multithread": True,
    "wsgi.multiprocess": True,
    "wsgi.run_once": False,
}


class Gateway:
    """The gateway of one collector.

    Args:
        keys: the valid keys.
        target: the collector's own WSGI application, which answers the inner requests.

    Raises:
        MissingExtraError: `pyhpke` is not installed.
    """

    def __init__(self, keys: GatewayKeys, target: WSGIApplication) -> None:
        require_hpke()
        self.keys = keys
        self._target = target

    def open(self, message: bytes) -> Received:
        """Decapsulate a request. Raises ProblemError if no key of this gateway opens it."""
        number = message[0] if message else -1
        key = self.keys.find(number)
        if len(message) < HEADER_BYTES:
            raise ProblemError(OHTTP_MALFORMED, "the body is no encapsulated request")
        if key is None or message[:HEADER_BYTES] != header(number):
            raise ProblemError(OHTTP_KEY, "the request is for no key and suite that this gateway has")
        try:
            return decapsulate(key, message)
        except EncapsulationError:
            detail = "it is encapsulated for another key, or was changed on its way"
            raise ProblemError(OHTTP_MALFORMED, detail) from None

    def answer(self, received: Received) -> bytes:
        """Return the collector's answer to a decapsulated request, encapsulated for its device."""
        size = ANSWER_BYTES
        try:
            request = Request.decode(received.content)
            size = answer_bytes(request.method)
            answer = self._ask(_environ_of(request), size)
        except BinaryError:
            answer = _refusal(ProblemError(OBLIVIOUS_REQUEST, "what is inside is no request of known length"))
        except Exception as error:
            # From outside, every failure must look like any other answer.
            answer = _refusal(problem_of(error))
        answer.fields.append(("date", formatdate(usegmt=True)))
        try:
            return received.answer(answer.encode(size))
        except BinaryError:
            detail = f"the answer is above the {size} bytes of every answer to this method"
            return received.answer(_refusal(ProblemError(ANSWER_TOO_LARGE, detail)).encode(size))

    def _ask(self, environ: dict[str, Any], most: int) -> Answer:
        """Return the target's answer, cut after `most` bytes.

        It runs in a fresh context, which has nothing of the outer request.
        """
        return Context().run(_asked, self._target, environ, most)


def _environ_of(request: Request) -> dict[str, Any]:
    """Return a device's request as a WSGI environment. Raises ProblemError for any other request."""
    route = ROUTES.get(request.method)
    if route is None or not route.fullmatch(request.path):
        raise ProblemError(OBLIVIOUS_ROUTE, "a relayed request sends or deletes a report, or fetches a study")
    path, _, query = request.path.partition("?")
    return {
        **SERVER,
        **_fields_of(request),
        "REQUEST_METHOD": request.method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_LENGTH": str(len(request.content)),
        "wsgi.input": BytesIO(request.content),
        "wsgi.errors": sys.stderr,
    }


def _fields_of(request: Request) -> dict[str, str]:
    """Return the fields that devices send and ignore others. Raises ProblemError for inconsistent fields."""
    found: dict[str, str] = {}
    for name, value in request.fields:
        is_length = name == "content-length"
        if name in REFUSED or name in found or (is_length and value != str(len(request.content))):
            raise ProblemError(OBLIVIOUS_REQUEST, f"the field {name[:32]!r} does not go with this message")
        if name == "authorization" and not value.lower().startswith(TOKEN_SCHEME):
            raise ProblemError(OBLIVIOUS_REQUEST, "an operator's key goes to the collector, not through here")
        found[name] = value
    sent = {name: value for name, value in found.items() if name in SENT}
    return {_variable(name): value for name, value in sent.items()}


def _variable(name: str) -> str:
    variable = name.upper().replace("-", "_")
    return variable if name == "content-type" else f"HTTP_{variable}"


def _asked(target: WSGIApplication, environ: dict[str, Any], most: int) -> Answer:
    said: list[Any] = []

    def start(status: str, headers: list[tuple[str, str]], *_rest: Any) -> Any:
        said[:] = [int(status.split(" ", 1)[0]), headers]
        return lambda _data: None

    start_response: StartResponse = start
    body = target(environ, start_response)
    try:
        content = b"".join(_at_most(body, most))
    finally:
        if hasattr(body, "close"):
            body.close()
    status, headers = said
    fields = [(name.lower(), value) for name, value in headers if name.lower() in RETURNED]
    return Answer(status, fields, content)


def _at_most(pieces: Iterable[bytes], most: int) -> Iterable[bytes]:
    """Yield the pieces up to the first that exceeds the limit: the answer is too large then anyway."""
    length = 0
    for piece in pieces:
        yield piece
        length += len(piece)
        if length > most:
            return


def _refusal(problem: ProblemError) -> Answer:
    status, headers, body = problem.answer()
    fields = [("content-type", MEDIA_TYPE), *((name.lower(), value) for name, value in headers.items())]
    return Answer(status, fields, body.encode())
