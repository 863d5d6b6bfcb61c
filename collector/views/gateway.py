"""Devices' requests that come through a relay (RFC 9458), and none but these where an operator says so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from flask import Blueprint, Response, current_app, request

from collector import problems
from collector.oblivious.gateway import Gateway
from collector.problems import MEDIA_TYPE_UNSUPPORTED, OBLIVIOUS_ABSENT, OBLIVIOUS_NEEDED, ProblemError
from collector.views.bodies import opened_body
from collector.views.handling import Headers, harden, response_of
from collector.views.openapi import Operation
from ldp_client.oblivious.encapsulation import ANSWER_TYPE, KEYS_TYPE, REQUEST_TYPE

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

gateway = Blueprint("gateway", __name__)
EXTENSION = "ldpkit-gateway"
REPORTS = re.compile(r"/v1/studies/[^/]+/reports(/[^/]+)?/?")
# What devices do there. A deletion with a key is an operator's.
OF_DEVICES = ("PUT", "POST", "DELETE")


@gateway.post("/ohttp")
def receive() -> Response:
    """200 with what the collector says inside, for the device alone; whatever that is, it has one size."""
    found = _gateway()
    if request.mimetype != REQUEST_TYPE:
        raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the body must be {REQUEST_TYPE}")
    with opened_body() as body:
        received = found.open(body)
    # Not within: the request inside has its body's bytes counted as every other one.
    return Response(found.answer(received), content_type=ANSWER_TYPE)


@gateway.get("/.well-known/ohttp-gateway")
def show_keys() -> Response:
    """The keys that are valid, the newest first. Devices take theirs from the study, which all see alike."""
    return Response(_gateway().keys.published(), content_type=KEYS_TYPE)


def _gateway() -> Gateway:
    found: Gateway | None = current_app.extensions.get(EXTENSION)
    if found is None:
        raise ProblemError(OBLIVIOUS_ABSENT, "it has no keys to open requests with")
    return found


class OnlyOblivious:
    """The WSGI application `plain`, without what devices do in the clear: their address is seen there."""

    def __init__(self, plain: WSGIApplication, headers: Headers) -> None:
        self.plain = plain
        self._headers = headers

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        is_report = REPORTS.fullmatch(environ["PATH_INFO"]) and environ["REQUEST_METHOD"] in OF_DEVICES
        is_operator = environ["REQUEST_METHOD"] == "DELETE" and "HTTP_LDPKIT_WITHDRAWAL" not in environ
        if not is_report or is_operator:
            return self.plain(environ, start_response)
        problem = ProblemError(
            OBLIVIOUS_NEEDED, "this collector takes reports through its studies' relays alone"
        )
        return harden(response_of(problem), self._headers)(environ, start_response)


BYTES = {"type": "string"}

OPERATIONS = (
    Operation(
        "post",
        "/ohttp",
        "askObliviously",
        "A device's request, encapsulated (RFC 9458): PUT or DELETE of a report, or GET of a study's "
        "version. Its relay forwards it; a replay changes nothing.",
        {200: ("What the collector says, encapsulated; all answers have one size", {ANSWER_TYPE: BYTES})},
        (
            problems.OHTTP_KEY,
            problems.OHTTP_MALFORMED,
            problems.MALFORMED_ENCODING,
            problems.OBLIVIOUS_ABSENT,
            problems.BODY_TOO_LARGE,
            problems.MEDIA_TYPE_UNSUPPORTED,
            problems.OVERLOADED,
        ),
        body={REQUEST_TYPE: BYTES},
        body_note="One encapsulated request.",
    ),
    Operation(
        "get",
        "/.well-known/ohttp-gateway",
        "readGatewayKeys",
        "The key configurations that the gateway has, the newest first (RFC 9458, section 3.2).",
        {200: ("The configurations", {KEYS_TYPE: BYTES})},
        (problems.OBLIVIOUS_ABSENT,),
    ),
)
