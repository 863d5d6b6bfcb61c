"""Devices' requests that come through a relay (RFC 9458). An operator may refuse reports that do not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from flask import Response, current_app

from collector.api.bodies import require_type, sent_bytes
from collector.api.handling import harden, refuse_upload, response_of
from collector.api.openapi import TEXT, Api
from collector.context import current_collector
from collector.oblivious import Gateway
from collector.problems import OBLIVIOUS_ABSENT, OBLIVIOUS_NEEDED, ProblemError
from ldp_client.oblivious.encapsulation import ANSWER_TYPE, KEYS_TYPE, MOST_MESSAGE_BYTES, REQUEST_TYPE

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

gateway = Api("gateway", __name__)
gateway.register_error_handler(Exception, refuse_upload)
EXTENSION = "ldpkit-gateway"
UPLOAD = re.compile(r"/v1/studies/[^/]+/reports(/[^/]+)?/?")
# A version in the query shows a tool that reads a published document, not a device that fetches a study.
FETCH = re.compile(r"(/v1/studies/[^/]+(/signed)?|/s/[^/]+)/?\?")


@gateway.operation("post", "/ohttp", media_type=ANSWER_TYPE, body={REQUEST_TYPE: TEXT})
def ask_obliviously() -> Response:
    """Answer a device's encapsulated request: PUT or DELETE of a report, or GET of a study, signed or not.

    Its relay forwards it; a replay changes nothing. The size of the answer depends on the method alone.
    """
    answering = _gateway()
    require_type(REQUEST_TYPE)
    # The padded request may exceed the setting body_limit, which holds for the inner request.
    body = sent_bytes(MOST_MESSAGE_BYTES)
    with current_collector().parsing.hold(len(body)):
        received = answering.open(body)
    # Outside the block, because the inner request's body is counted like any other.
    return Response(answering.answer(received), content_type=ANSWER_TYPE)


@gateway.operation("get", "/.well-known/ohttp-gateway", media_type=KEYS_TYPE)
def read_gateway_keys() -> Response:
    """Return the configurations of the gateway's keys, the newest first (RFC 9458, section 3.2).

    Apps ship a key: a fetched key could mark its device.
    """
    return Response(_gateway().keys.published(), content_type=KEYS_TYPE)


def _gateway() -> Gateway:
    answering: Gateway | None = current_app.extensions.get(EXTENSION)
    if answering is None:
        raise ProblemError(OBLIVIOUS_ABSENT, "it has no keys to open requests with")
    return answering


class OnlyOblivious:
    """Wraps the WSGI application `plain` and refuses direct fetches and uploads, which show an address.

    So people answer only what can be sent. Direct deletions pass: a person may always withdraw.
    """

    def __init__(self, plain: WSGIApplication) -> None:
        self.plain = plain

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        is_fetch = method in ("GET", "HEAD") and FETCH.fullmatch(f"{path}?{environ.get('QUERY_STRING', '')}")
        if not is_fetch and not (method in ("PUT", "POST") and UPLOAD.fullmatch(path)):
            return self.plain(environ, start_response)
        problem = ProblemError(OBLIVIOUS_NEEDED, "this collector answers devices only through a relay")
        return harden(response_of(problem))(environ, start_response)
