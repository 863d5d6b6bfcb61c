"""The issuer as a WSGI application: tokens, the directory of its keys, and health checks."""

from __future__ import annotations

from flask import Flask, Response, jsonify, request

from collector.api.handling import harden, response_of
from collector.db import Bounds, Database, problem_of
from collector.issuer import store
from collector.issuer.models import ISSUER
from collector.issuer.token_issuer import TokenIssuer, require_no_copy
from collector.migrations import check
from collector.problems import MEDIA_TYPE_UNSUPPORTED, ProblemError
from collector.reports.intake import TICKET
from ldp_client.core.tokens import REQUEST_BYTES, REQUEST_TYPE, RESPONSE_TYPE, to_base64url

TOKENS = "/v1/tokens"
DIRECTORY = "/.well-known/private-token-issuer-directory"
DIRECTORY_TYPE = "application/private-token-issuer-directory"
DIRECTORY_SECONDS = 3600
BUSY_SECONDS, PATIENCE, CONNECTIONS = 2.0, 5.0, 4
# Any page may ask: a code's holder gets its token, and the issuer grants no other rights.
CORS = (
    ("Access-Control-Allow-Origin", "*"),
    ("Access-Control-Expose-Headers", "Retry-After"),
)
ASKED_FIRST = (
    ("Access-Control-Allow-Methods", "POST"),
    ("Access-Control-Allow-Headers", f"Content-Type, {TICKET}"),
    ("Access-Control-Max-Age", "7200"),
)
DEFAULTS = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), *CORS)


def create_issuer(url: str) -> Flask:
    """Build an issuer on the database that `ldpkit issuer init` made. Raises InputError."""
    database = Database(url, BUSY_SECONDS, Bounds(CONNECTIONS, PATIENCE))
    check(database, schema=ISSUER)
    with database.read() as session:
        store.refuse_copy(session)
    # A connection must not cross the fork that starts a worker.
    database.engine.dispose()
    giving = TokenIssuer(database)
    app = Flask("issuer", static_folder=None)
    app.register_error_handler(Exception, lambda error: response_of(problem_of(error)))
    app.after_request(lambda response: harden(response, DEFAULTS))

    @app.post(TOKENS, provide_automatic_options=False)
    def give() -> Response:
        if request.mimetype != REQUEST_TYPE:
            raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the body must be {REQUEST_TYPE}")
        request.max_content_length = REQUEST_BYTES + 1
        answer = giving.answer(request.headers.get(TICKET, ""), request.get_data(cache=False))
        return Response(answer, content_type=RESPONSE_TYPE)

    @app.route(TOKENS, methods=["OPTIONS"])
    def allow() -> Response:
        return Response(status=204, headers=list(ASKED_FIRST))

    @app.get(DIRECTORY)
    def directory() -> Response:
        with database.read() as session:
            spkis = store.all_spkis(session)
        keys = [{"token-type": 2, "token-key": to_base64url(spki)} for spki in spkis]
        response = jsonify({"issuer-request-uri": TOKENS, "token-keys": keys})
        response.content_type = DIRECTORY_TYPE
        response.headers["Cache-Control"] = f"max-age={DIRECTORY_SECONDS}"
        return response

    @app.get("/healthz")
    def alive() -> Response:
        return jsonify(status="ok")

    @app.get("/readyz")
    def ready() -> Response:
        with database.read() as session:
            require_no_copy(session)
        return jsonify(status="ok")

    app.extensions["issuer"] = database
    return app
