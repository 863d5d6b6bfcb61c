"""Devices' requests that come through a relay (RFC 9458). An operator may refuse all others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from flask import Blueprint, Response, current_app, request

from collector import problems
from collector.context import current_collector
from collector.oblivious.gateway import Gateway
from collector.operator.daily import documents_of
from collector.problems import MEDIA_TYPE_UNSUPPORTED, OBLIVIOUS_ABSENT, OBLIVIOUS_NEEDED, ProblemError
from collector.views.bodies import opened_body
from collector.views.handling import Headers, harden, refuse_upload, response_of
from collector.views.openapi import Operation
from ldp_client.oblivious.encapsulation import ANSWER_TYPE, KEYS_TYPE, REQUEST_TYPE

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

gateway = Blueprint("gateway", __name__)
gateway.register_error_handler(Exception, refuse_upload)
EXTENSION = "ldpkit-gateway"
REPORTS = re.compile(r"/v1/studies/[^/]+/reports(/[^/]+)?/?")
REFUSED = ("PUT", "POST")
# A key of the WSGI environment that no request header can set.
IN_CLEAR = "ldpkit.in_clear"


@gateway.post("/ohttp")
def receive() -> Response:
    """Return 200 with the collector's encapsulated answer; its size is the same for every result."""
    found = _gateway()
    if request.mimetype != REQUEST_TYPE:
        raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the body must be {REQUEST_TYPE}")
    with opened_body() as body:
        received = found.open(body)
    # Outside the block, because the inner request's body is counted like any other.
    return Response(found.answer(received), content_type=ANSWER_TYPE)


@gateway.get("/.well-known/ohttp-gateway")
def show_keys() -> Response:
    """Return the valid keys, the newest first. Devices take the key from the study, which all see alike."""
    return Response(_gateway().keys.published(), content_type=KEYS_TYPE)


def _gateway() -> Gateway:
    found: Gateway | None = current_app.extensions.get(EXTENSION)
    if found is None:
        raise ProblemError(OBLIVIOUS_ABSENT, "it has no keys to open requests with")
    return found


class OnlyOblivious:
    """Wraps the WSGI application `plain` and refuses devices' direct requests, which show their address.

    Deletions pass, marked IN_CLEAR: `require_relay` refuses them if the study has a relay.
    """

    def __init__(self, plain: WSGIApplication, headers: Headers) -> None:
        self.plain = plain
        self._headers = headers

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        environ[IN_CLEAR] = True
        if environ["REQUEST_METHOD"] not in REFUSED or not REPORTS.fullmatch(environ["PATH_INFO"]):
            return self.plain(environ, start_response)
        return harden(response_of(_needed()), self._headers)(environ, start_response)


def require_relay(study_id: str) -> None:
    """Raise ProblemError for a device's direct deletion if the study's devices have a relay to use.

    If a version of the study states no relay, its devices have no other way. Then all direct deletions of the
    study are accepted, because an answer that depended on the report would show which reports are stored.
    """
    if not request.environ.get(IN_CLEAR):
        return
    channels = [version.channel for version in documents_of(current_collector(), study_id)]
    if all(channel is not None and channel.oblivious is not None for channel in channels):
        raise _needed()


def _needed() -> ProblemError:
    return ProblemError(OBLIVIOUS_NEEDED, "this collector takes reports through its studies' relays alone")


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
