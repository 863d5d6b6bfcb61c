"""The application of an issuer: routes for devices and for its operator, on a separate database.

It never sees a report. Like a collector, it has keys, the audit log, the daily upkeep and the health checks.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from typing import Any

from flask import Flask, Response, jsonify, request
from sqlalchemy import select
from sqlalchemy.orm import Session

from collector import problems
from collector.api import handling
from collector.api.auth import acting_key
from collector.api.bodies import require_type, sent_bytes
from collector.api.health import health
from collector.api.openapi import TEXT, Api, Operation, serve_document
from collector.api.operator import MOST_TICKETS, PUBLIC, operator, values_of
from collector.api.parameters import TICKET_HEADER
from collector.clock import utc_today
from collector.context import EXTENSION, Collector, current_collector
from collector.issuer import issue
from collector.issuer.issue import Person
from collector.issuer.signing import FaultError, load_key, sign
from collector.keys import Role, hash_key
from collector.limiter import log_throttled
from collector.models import TicketKeyRow, TicketRow
from collector.problems import Kind, ProblemError
from collector.settings import Settings
from ldp_client.core.tokens import REQUEST_BYTES, REQUEST_TYPE, RESPONSE_TYPE, TYPE, short_id_of, to_base64url
from ldp_client.documents.canonical import to_base64
from ldp_client.documents.errors import InputError
from ldp_client.documents.fields import Boolean, Integer, Text
from ldp_client.documents.shapes import ListOf, Record

# Makes a change to the database, as `Writer.change` does.
Change = Callable[[tuple[str, bytes], Callable[[Session], bytes]], bytes]
# People with names in one request.
MOST_PEOPLE = 1000
REQUEST_INVALID = Kind(
    "token-request-invalid", 422, "Send a TokenRequest of type 0x0002 (RFC 9578, section 6.1), 259 bytes."
)
KEY_UNKNOWN = Kind("token-key-unknown", 422, "Ask with a key that the study's document names.")
KEY_OTHER = Kind(
    "token-key-other",
    409,
    "Ask once more, with the study's key whose truncated id is `key_id` (`key`: its place at the issuer).",
)
KINDS = (REQUEST_INVALID, KEY_UNKNOWN, KEY_OTHER)

TOKENS = "/v1/tokens"
DIRECTORY = "/.well-known/private-token-issuer-directory"
DIRECTORY_TYPE = "application/private-token-issuer-directory"
DIRECTORY_SECONDS = 3600
# Any page may ask: a ticket's holder gets its token, and the issuer grants no other rights.
CORS = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After"}
ASKED_FIRST = {
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": f"Content-Type, {TICKET_HEADER.name}",
    "Access-Control-Max-Age": "7200",
}
# The operations of a collector that an issuer has too.
SHARED = ("keepUp", "listKeys", "makeKey", "removeKey", "readAuditLog", "isAlive", "isReady", "readMetrics")
PEOPLE = ListOf(Record({"name": Text(200)}, {"public": PUBLIC}), 1, MOST_PEOPLE, repeats=True)
TICKETS = Record(
    {},
    {
        "count": Integer(1, MOST_TICKETS),
        "people": PEOPLE,
        "public": PUBLIC,
        "again": Boolean(),
        "second": Boolean(),
    },
)
KEY = Record({}, {"public": PUBLIC})


def answer(change: Change, ticket: str, body: bytes) -> bytes:
    """Return the response to a request, once its claim on the ticket is durable. Raises ProblemError."""
    if len(body) != REQUEST_BYTES or not body.startswith(TYPE):
        raise ProblemError(REQUEST_INVALID, f"a request of type 0x0002 has {REQUEST_BYTES} bytes", "")
    if not ticket:
        raise ProblemError(problems.TICKET_NEEDED, "the header LDPKit-Ticket is missing")
    hashed = hash_key(ticket)
    return _signed(change(("", hashed), lambda session: _claim(session, hashed, body)), body)


def _claim(session: Session, hashed: bytes, body: bytes) -> bytes:
    """Bind a ticket to its only request; return the private key to answer with."""
    try:
        issue.require_original(session)
    except InputError as error:
        log_throttled(logging.ERROR, str(error))
        raise ProblemError(
            problems.UNAVAILABLE, "the database was restored from a backup; no token was given"
        ) from None
    here = TicketRow.study.in_(select(TicketKeyRow.study))
    row = session.scalar(select(TicketRow).where(here, TicketRow.hash == hashed).with_for_update())
    if row is None:
        log_throttled(logging.WARNING, "a ticket came that this issuer did not make")
        raise ProblemError(problems.TICKET_INVALID, "no such ticket was made here")
    of_study = select(TicketKeyRow).where(TicketKeyRow.study == row.study).order_by(TicketKeyRow.place)
    keys = list(session.scalars(of_study))
    place = [other.public for other in keys].index(str(row.public))
    key, short_ids = keys[place], [short_id_of(other.spki) for other in keys]
    if body[2] not in short_ids:
        raise ProblemError(KEY_UNKNOWN, "no key of the ticket's study has this id")
    if body[2] != short_ids[place]:
        # The id is also sent, because a study may name the keys in another order, or only some of them.
        more = {"key": place, "key_id": short_ids[place]}
        raise ProblemError(KEY_OTHER, f"the ticket is for key {place} of its study", more=more)
    if not 0 < int.from_bytes(body[3:], "big") < load_key(key.private).public_numbers.n:
        raise ProblemError(REQUEST_INVALID, "the blinded message is no number below the modulus", "")
    digest = hashlib.sha256(body).digest()
    if row.request is None:
        row.request = digest
        session.flush()
    elif row.request != digest:
        raise ProblemError(
            problems.TICKET_SPENT, "another request with this ticket was answered, or may have been"
        )
    return key.private


# Repeated requests cost one signature.
@lru_cache(maxsize=1024)
def _signed(private: bytes, body: bytes) -> bytes:
    try:
        return sign(load_key(private), body[3:])
    except FaultError:
        line = "a signature came out wrong and was thrown away: have this machine's memory checked"
        log_throttled(logging.ERROR, line)
        raise ProblemError(problems.INTERNAL, "the signature failed its check; nothing was given") from None


signing = Api("signing", __name__)


@signing.after_request
def _allow_pages(response: Response) -> Response:
    response.headers.update(CORS)
    if request.method == "OPTIONS":
        response.headers.update(ASKED_FIRST)
    return response


@signing.operation(
    "post",
    TOKENS,
    media_type=RESPONSE_TYPE,
    headers=(TICKET_HEADER,),
    body={REQUEST_TYPE: TEXT},
)
def give_token() -> Response:
    """Sign a blinded number for a ticket (RFC 9578, section 6); the same request gets the same answer."""
    require_type(REQUEST_TYPE)
    ticket, body = request.headers.get(TICKET_HEADER.name, ""), sent_bytes(REQUEST_BYTES)
    return Response(answer(current_collector().writer.change, ticket, body), content_type=RESPONSE_TYPE)


@signing.operation("get", DIRECTORY, {"type": "object"}, media_type=DIRECTORY_TYPE)
def list_public_keys() -> Response:
    """Return the issuer directory (RFC 9578, section 4)."""
    with current_collector().database.read() as session:
        spkis = sorted(session.scalars(select(TicketKeyRow.spki)))
    keys = [{"token-type": 2, "token-key": to_base64url(spki)} for spki in spkis]
    response = jsonify({"issuer-request-uri": TOKENS, "token-keys": keys})
    response.content_type = DIRECTORY_TYPE
    response.headers["Cache-Control"] = f"max-age={DIRECTORY_SECONDS}"
    return response


routes = Api("operator", __name__)


@routes.operation("post", "/v1/studies/{study_id}/tickets", "Tickets", role=Role.OPERATE, takes=TICKETS)
def make_tickets(study_id: str, body: dict[str, Any]) -> Response:
    """Make tickets for named people, or for a number of people of one stratum."""
    people = [Person(one["name"], values_of(one["public"])) for one in body["people"] or ()]
    if bool(people) == bool(body["count"]):
        raise ProblemError(problems.STATEMENT_INVALID, "give either count or people", "count")
    people = people or [Person("", values_of(body["public"]))] * body["count"]
    by, is_again, is_second = acting_key().name, bool(body["again"]), bool(body["second"])

    def act(session: Session) -> tuple[list[str], list[str]]:
        return issue.invite(session, study_id, people, by, is_again, is_second)

    tickets, warnings = current_collector().writer.act(act)
    return jsonify(tickets=tickets, warnings=warnings)


@routes.operation("get", "/v1/studies/{study_id}/tickets", "TicketKeys", role=Role.OPERATE)
def read_tickets(study_id: str) -> Response:
    """Return each key with its numbers of tickets and tokens, and the people with names."""
    return jsonify(**_status(study_id))


@routes.operation("post", "/v1/studies/{study_id}/tickets/keys", "TicketKeys", role=Role.OPERATE, takes=KEY)
def make_ticket_key(study_id: str, body: dict[str, Any]) -> Response:
    """Make a key for a study or a stratum unless there is one."""
    public, by = values_of(body["public"]), acting_key().name
    current_collector().writer.act(lambda session: issue.add_key(session, study_id, public, by))
    return jsonify(**_status(study_id))


def _status(study_id: str) -> dict[str, Any]:
    with current_collector().database.read() as session:
        counts, people = issue.counts(session, study_id), issue.names_of(session, study_id)
    keys = [{**count._asdict(), "key": to_base64(count.key)} for count in counts]
    return {"id": study_id, "keys": keys, "people": [{"name": each[0], "token": each[1]} for each in people]}


serve_document(routes, lambda: OPERATIONS)
for _operation in (*operator.operations, *health.operations):
    if _operation.name in SHARED:
        routes.add(_operation)
OPERATIONS: tuple[Operation, ...] = (*routes.operations, *signing.operations)


def create_issuer_app(
    config: Settings | Mapping[str, object] | None = None,
    *,
    today: Callable[[], date] = utc_today,
) -> Flask:
    """Build an issuer of blind tickets as a WSGI application, on a database from `ldpkit init --as issuer`.

    Args:
        config: Settings, or a mapping of their names; None reads LDPKIT_* from the environment.
        today: the clock, which gives the day in UTC; for tests.

    Returns:
        The Flask application.

    Raises:
        InputError: a setting is wrong, or the database is a collector's, or a restored copy.
    """
    app = Flask("collector.issuer", static_folder=None)
    collector = Collector(config, today)
    with collector.database.read() as session:
        issue.refuse_reports(session)
        issue.require_original(session)
    # A connection must not cross the fork that starts a worker.
    collector.database.engine.dispose()
    app.extensions[EXTENSION] = collector
    handling.install(app)
    app.register_blueprint(signing)
    app.register_blueprint(routes)
    return app
