"""A node's routes: take sealed shares from devices, and close a study with the aggregator."""

from __future__ import annotations

from base64 import b64encode
from functools import partial

from flask import Blueprint, Response, jsonify, make_response, request
from sqlalchemy.orm import Session

from collector import problems, store
from collector.api.auth import requires, withdrawing_key
from collector.api.bodies import body_bytes, json_body, operators_json
from collector.api.handling import refuse_upload
from collector.api.openapi import (
    COUNT,
    JSON,
    KEY,
    RIGHT,
    TEXT,
    TOKEN_NOTE,
    TOKENS,
    WRITE,
    Operation,
    object_of,
    reference,
)
from collector.api.parameters import (
    ENCODING,
    MOST_CHARACTERS,
    REPORT_ID,
    STUDY_ID,
    WITHDRAWAL_HEADER,
    Parameter,
    report_id_bytes,
)
from collector.context import current_collector
from collector.keys import Role
from collector.nodes import summing
from collector.nodes.drawing import COMMITMENTS, Drawing
from collector.problems import MEDIA_TYPE_UNSUPPORTED, SUM_FIXED, ProblemError
from collector.reports import intake
from collector.reports.withdraw import WITHDRAWN, withdraw
from ldp_client.documents.errors import StatementError
from ldp_client.documents.fields import Hex, Text
from ldp_client.documents.shapes import Record
from ldp_client.secure_sum.messages import SHARES

shares = Blueprint("shares", __name__, url_prefix="/v1/studies/<study_id>")
shares.register_error_handler(Exception, refuse_upload)

BINARY = "application/octet-stream"
WANTED = Record({"set": Hex(64)})
ALL_COMMITMENTS = Record({"commitments": COMMITMENTS})


@shares.put("/shares/<report_id>")
def put(study_id: str, report_id: str) -> Response:
    """Store a sealed share: return 201 once it is durable, or 200 if it was durable before."""
    collector = current_collector()
    report_id_bytes(report_id)
    opener = collector.node_part().opener(study_id)
    with intake.naming_study(collector, study_id, opener.study.version):
        body = _binary_body()
        share = collector.node_part().take(study_id, report_id, body)
        nonce = opener.nonce(report_id, body, request.headers.get(SHARES, ""))
        token = request.headers.get("Authorization")
        receipt = intake.submit_one(collector, study_id, share, None, token, nonce)
    response = jsonify(id=report_id, result=receipt.value)
    response.status_code = 201 if receipt is intake.Receipt.STORED else 200
    return response


@shares.delete("/shares/<report_id>")
def delete(study_id: str, report_id: str) -> Response:
    """Withdraw a share: return a receipt once it is permanently deleted, or will be refused.

    After the study is closed, stored shares stay.
    """
    identifier = report_id_bytes(report_id)
    key = withdrawing_key(report_id)
    collector = current_collector()
    study = collector.node_part().opener(study_id).study
    with intake.naming_study(collector, study_id, study.version):
        refuse = partial(_refuse_fixed, identifier)
        withdraw(collector, study_id, identifier, by_device=key is None, refuse=refuse)
    if key is not None:
        collector.daily.write(key, "delete reports", study_id)
    return jsonify(id=report_id, result=WITHDRAWN)


@shares.get("/shares/count")
@requires(Role.OPERATE)
def count(study_id: str) -> Response:
    """Return how many shares there are, also while the study is open."""
    return jsonify(shares=current_collector().node_part().share_count(study_id))


@shares.get("/shares")
@requires(Role.OPERATE)
def list_ids(study_id: str) -> Response:
    """Return the report ids of a closed study, 16 bytes each, ascending."""
    response = make_response(b"".join(current_collector().node_part().report_ids(study_id)))
    response.content_type = BINARY
    return response


@shares.post("/commitment")
@requires(Role.OPERATE)
def commit(study_id: str) -> Response:
    """Return the node's signed commitment to its set and its nonce; the same at every call."""
    collector = current_collector()
    return jsonify(collector.node_part().commit(study_id, collector.writer.act).to_document())


@shares.post("/nonce")
@requires(Role.OPERATE)
def show(study_id: str) -> Response:
    """Return the node's nonce, for these commitments of all nodes and no others ever."""
    collector = current_collector()
    node = collector.node_part()
    commitments = ALL_COMMITMENTS.read(json_body(), "", StatementError)["commitments"]
    nonce = collector.writer.act(lambda session: node.show(session, study_id, commitments))
    return jsonify(nonce=nonce.hex())


@shares.get("/drawing")
@requires(Role.OPERATE)
def drawing(study_id: str) -> Response:
    """Return the drawing of the set that the node is bound to, or null."""
    response = make_response(current_collector().node_part().drawing(study_id) or b"null")
    response.content_type = JSON
    return response


@shares.post("/set")
@requires(Role.OPERATE)
def confirm(study_id: str) -> Response:
    """Bind the node to the set that was drawn; return its signed statement."""
    collector = current_collector()
    node = collector.node_part()
    drawn = Drawing.from_document(operators_json(node.drawing_limit))
    return jsonify(node.confirm(study_id, drawn, collector.writer.act).to_document())


@shares.post("/sum")
@requires(Role.OPERATE)
def total(study_id: str) -> Response:
    """Return the sum over the confirmed set, and the node's signed statement; the same at every call."""
    collector = current_collector()
    wanted = WANTED.read(json_body(), "", StatementError)
    statement, words = collector.node_part().total(study_id, wanted["set"])
    collector.writer.act(lambda session: collector.node_part().keep(session, study_id, words))
    return jsonify(statement=statement.to_document(), total=b64encode(words).decode())


def _refuse_fixed(identifier: bytes, session: Session, study: store.StudyState) -> None:
    if study.closed and summing.keeps(session, study.number, identifier):
        raise ProblemError(SUM_FIXED, "the study was closed, and its shares stay as they are")


def _binary_body() -> bytes:
    if request.mimetype != BINARY:
        raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the body must be {BINARY}")
    return body_bytes()


SHARES_HEADER = Parameter(
    SHARES,
    Text(MOST_CHARACTERS),
    "header",
    description="SHA-256 of each sealed share in the nodes' order, as hexadecimal digits.",
)
BYTES = {BINARY: {"type": "string"}}
TAKES_BYTES = (problems.BODY_TOO_LARGE, problems.MALFORMED_ENCODING, problems.MEDIA_TYPE_UNSUPPORTED)
CLOSED = (*KEY, problems.STUDY_UNKNOWN, problems.STUDY_OPEN)

DRAWING = {
    "format": {"const": "ldpkit.drawing/1"},
    "commitments": {"type": "array", "items": reference("Statement")},
    "nonces": {"type": "array", "items": Hex(64).json_schema()},
    "ids": TEXT,
    "holders": TEXT,
}

OPERATIONS = (
    Operation(
        "put",
        "/v1/studies/{study_id}/shares/{report_id}",
        "uploadShare",
        "Store one device's sealed share, durably and once; sending it again does no harm. " + TOKEN_NOTE,
        {
            200: ("Stored before", {JSON: reference("Receipt")}),
            201: ("Stored", {JSON: reference("Receipt")}),
        },
        (
            *TAKES_BYTES,
            problems.STUDY_UNKNOWN,
            problems.PARAMETER_INVALID,
            problems.REPORT_INVALID,
            problems.REPORT_CONFLICT,
            *TOKENS,
            problems.STUDY_CLOSED,
            problems.REPORT_WITHDRAWN,
            problems.STUDY_NOT_OPEN,
            problems.TOO_MANY_REPORTS,
            *WRITE,
        ),
        (STUDY_ID, REPORT_ID, ENCODING, SHARES_HEADER),
        BYTES,
        "The share, sealed to this node.",
    ),
    Operation(
        "delete",
        "/v1/studies/{study_id}/shares/{report_id}",
        "withdrawShare",
        "Delete a share permanently while the study is open; afterwards only confirm that a share is not "
        "stored.",
        {200: ("Withdrawn", {JSON: reference("Withdrawal")})},
        (
            *RIGHT,
            problems.STUDY_UNKNOWN,
            problems.REPORT_UNKNOWN,
            problems.SUM_FIXED,
            problems.PARAMETER_INVALID,
            *WRITE,
        ),
        (STUDY_ID, REPORT_ID, WITHDRAWAL_HEADER),
    ),
    Operation(
        "get",
        "/v1/studies/{study_id}/shares/count",
        "countShares",
        "How many shares there are, in an open study too; the size of the node's set once it is bound.",
        {200: ("The number", {JSON: object_of({"shares": COUNT})})},
        (*KEY, problems.STUDY_UNKNOWN),
        (STUDY_ID,),
    ),
    Operation(
        "get",
        "/v1/studies/{study_id}/shares",
        "listShares",
        "The report ids of a closed study, or of the node's set once it is bound; 16 bytes each, ascending.",
        {200: ("The ids", BYTES)},
        CLOSED,
        (STUDY_ID,),
    ),
    Operation(
        "post",
        "/v1/studies/{study_id}/commitment",
        "commitToDrawing",
        "Commit the node to its set of shares and to a nonce, permanently.",
        {200: ("What the node signs", {JSON: reference("Statement")})},
        (*CLOSED, problems.SET_CONFLICT, *WRITE),
        (STUDY_ID,),
    ),
    Operation(
        "post",
        "/v1/studies/{study_id}/nonce",
        "showNonce",
        "The node's nonce, for these commitments of all nodes and no others ever.",
        {200: ("The nonce", {JSON: object_of({"nonce": Hex(64).json_schema()})})},
        (
            *CLOSED,
            *TAKES_BYTES,
            problems.MALFORMED_JSON,
            problems.STATEMENT_INVALID,
            problems.SET_CONFLICT,
            *WRITE,
        ),
        (STUDY_ID, ENCODING),
        {JSON: object_of({"commitments": {"type": "array", "items": reference("Statement")}})},
        "What all nodes committed to, in the study's order.",
    ),
    Operation(
        "get",
        "/v1/studies/{study_id}/drawing",
        "fetchDrawing",
        "The drawing of the set that the node is bound to, or null.",
        {200: ("The drawing", {JSON: {"type": ["object", "null"]}})},
        CLOSED,
        (STUDY_ID,),
    ),
    Operation(
        "post",
        "/v1/studies/{study_id}/set",
        "confirmSet",
        "Bind the node to the set that all nodes drew, permanently.",
        {200: ("What the node signs", {JSON: reference("Statement")})},
        (
            *CLOSED,
            *TAKES_BYTES,
            problems.MALFORMED_JSON,
            problems.SET_CONFLICT,
            problems.SHARES_GONE,
            problems.STATEMENT_INVALID,
            *WRITE,
        ),
        (STUDY_ID, ENCODING),
        {JSON: object_of(DRAWING)},
        "Commitments and nonces of all nodes; all ids; for each id, 4 bytes with a bit for each node that "
        "holds it.",
    ),
    Operation(
        "post",
        "/v1/studies/{study_id}/sum",
        "sumShares",
        "The sum over the confirmed set; the same at every call.",
        {
            200: (
                "64-bit words, little-endian, in base64; what the node signs",
                {JSON: reference("NodeSum")},
            )
        },
        (
            *CLOSED,
            *TAKES_BYTES,
            problems.MALFORMED_JSON,
            problems.STATEMENT_INVALID,
            problems.SET_CONFLICT,
            problems.SHARES_GONE,
            *WRITE,
        ),
        (STUDY_ID, ENCODING),
        {JSON: object_of({"set": Hex(64).json_schema()})},
        "The set's digest: SHA-256 of its ids.",
    ),
)
