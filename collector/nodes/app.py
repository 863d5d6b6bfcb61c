"""The application of a node: its own routes, and those of a collector that its operator and devices use.

A node is a separate server. It has a collector's database, keys, audit log and daily upkeep, and takes
sealed shares of secure sums instead of reports.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from flask import Flask, Response, current_app, jsonify, request
from sqlalchemy.orm import Session

from collector import store
from collector.api import handling
from collector.api.auth import authorize, withdrawing_key
from collector.api.bodies import decoded_body, require_type, sent_bytes
from collector.api.handling import refuse_upload
from collector.api.health import health
from collector.api.openapi import JSON, TEXT, Api, Operation, serve_document
from collector.api.operator import operator
from collector.api.parameters import ENCODING, MOST_CHARACTERS, WITHDRAWAL_HEADER, Parameter
from collector.api.reports import withdraw_by
from collector.api.studies import change_state, publish_by, read_signed, studies
from collector.app import unfinished_studies
from collector.clock import utc_today
from collector.context import EXTENSION, Collector, current_collector
from collector.keys import TOKEN_KEY, Role
from collector.nodes.drawing import COMMITMENTS, COMMITTED, DRAWING, SHOWN, STATE, Drawing, Statement
from collector.nodes.keys import NodeKeys
from collector.nodes.node import Node, is_fixed
from collector.nodes.transcript import SUM, NodeSum
from collector.problems import FORBIDDEN, SUM_FIXED, ProblemError
from collector.reports import intake
from collector.reports.uploads import parse_body, require_json
from collector.settings import Settings
from collector.studies import close as close_study
from ldp_client.documents.canonical import to_base64
from ldp_client.documents.errors import InputError, StatementError, StudyError
from ldp_client.documents.fields import Text
from ldp_client.documents.shapes import Record
from ldp_client.secure_sum import SHARES

NODE = "ldpkit-node"
BINARY = "application/octet-stream"
SHARES_HEADER = Parameter(
    SHARES,
    Text(MOST_CHARACTERS),
    "header",
    description="SHA-256 of each sealed share in the nodes' order, as hexadecimal digits.",
)
SUM_PATH = "/v1/studies/{study_id}/sum"

api = Api("node", __name__)
api.register_error_handler(Exception, refuse_upload)


def current_node() -> Node:
    """Return the node of the app that handles this request."""
    node: Node = current_app.extensions[NODE]
    return node


def publish() -> Response:
    """Publish a secure sum that names this node: return 201, or 200 if it is published already."""
    authorize(Role.PUBLISH, of_some=True)
    return publish_by(current_node().publish, read_signed())


def close(study_id: str) -> Response:
    """Close the study permanently."""
    authorize(Role.PUBLISH)
    return change_state(study_id, True, lambda session: close_study(session, study_id, final=True))


def with_token(view: Callable[..., Any]) -> Callable[..., Any]:
    """Let a view run only with the operator's token.

    Closing a sum takes a key of every node. If these keys could also delete shares at all nodes, their owner
    could choose who is in the sum, and learn one person's answer.
    """

    @wraps(view)
    def guarded(**values: Any) -> Any:
        if authorize(Role.OPERATE) != TOKEN_KEY:
            raise ProblemError(FORBIDDEN, "at a node of secure sums, deletions need the operator's token")
        return view(**values)

    return guarded


@api.operation(
    "put",
    "/v1/studies/{study_id}/shares/{report_id}",
    "Receipt",
    statuses=(200, 201),
    headers=(ENCODING, SHARES_HEADER),
    body={BINARY: TEXT},
)
def upload_share(study_id: str, report_id: bytes) -> Response:
    """Store one device's sealed share, durably and once; sending it again does no harm.

    Authorization carries the share's token, as in RFC 9577.
    """
    collector, node = current_collector(), current_node()
    opener = node.opener(study_id)
    with intake.naming(opener.study.digest):
        require_type(BINARY)
        with decoded_body() as body:
            share = node.take(study_id, report_id.hex(), body)
            nonce = opener.nonce(report_id.hex(), body, request.headers.get(SHARES, ""))
        token = request.headers.get("Authorization")
        receipt = intake.submit_one(collector, study_id, share, None, token, nonce)
    response = jsonify(id=report_id.hex(), result=receipt.value)
    response.status_code = 201 if receipt is intake.Receipt.STORED else 200
    return response


@api.operation(
    "delete",
    "/v1/studies/{study_id}/shares/{report_id}",
    "Withdrawal",
    headers=(WITHDRAWAL_HEADER,),
    is_provable=True,
)
def withdraw_share(study_id: str, report_id: bytes) -> Response:
    """Delete a share permanently while the study is open.

    Afterwards only confirm that a share is not stored.
    """

    def refuse_fixed(session: Session, study: store.StudyState) -> None:
        if study.closed and is_fixed(session, study.number, report_id):
            raise ProblemError(SUM_FIXED, "the study was closed, and its shares stay as they are")

    key = withdrawing_key(report_id.hex())
    with intake.naming(current_node().opener(study_id).study.digest):
        return withdraw_by(key, study_id, report_id, refuse_fixed)


@api.operation("get", SUM_PATH, STATE.json_schema(), role=Role.OPERATE)
def read_sum_state(study_id: str) -> Response:
    """Return how many shares there are, in an open study too, and the drawing that binds the node, if any."""
    shares, drawing = current_node().state(study_id)
    return jsonify({"shares": shares} | ({"drawing": json.loads(drawing)} if drawing else {}))


@api.operation("post", "/v1/studies/{study_id}/commitment", COMMITTED.json_schema(), role=Role.OPERATE)
def commit_to_drawing(study_id: str) -> Response:
    """Commit the node to its set of shares and to a nonce, permanently; return the report ids of the set too.

    The ids have 16 bytes each and ascend.
    """
    statement, ids = current_node().commit(study_id, current_collector().writer.act)
    return jsonify(statement=statement.to_document(), ids=to_base64(b"".join(ids)))


@api.operation(
    "post",
    "/v1/studies/{study_id}/nonce",
    SHOWN.json_schema(),
    role=Role.OPERATE,
    headers=(ENCODING,),
    takes=Record({"commitments": COMMITMENTS}),
)
def show_nonce(study_id: str, body: dict[str, Any]) -> Response:
    """Return the node's nonce, for these commitments of all nodes and no others ever.

    They are in the study's order.
    """
    node, commitments = current_node(), [Statement(**fields) for fields in body["commitments"]]
    act = current_collector().writer.act
    return jsonify(nonce=act(lambda session: node.show(session, study_id, commitments)).hex())


@api.operation("post", SUM_PATH, SUM.json_schema(), role=Role.OPERATE, body={JSON: DRAWING.json_schema()})
def sum_shares(study_id: str) -> Response:
    """Bind the node to the set that all nodes drew, and return the sum over it; the same at every call.

    The body has commitments and nonces of all nodes, all ids, and for each id 4 bytes with a bit for each
    node that holds it. The sum is 64-bit words, little-endian, in base64.
    """
    node = current_node()
    require_json(request.mimetype)
    # It may be larger than a device's body.
    document = parse_body(sent_bytes(node.drawing_limit))
    drawing = Drawing.from_fields(DRAWING.read(document, "", StatementError))
    statement, total = node.total(study_id, drawing, current_collector().writer.act)
    return jsonify(NodeSum(statement, total).to_document())


# The operations of a collector that a node has too.
SHARED = (
    *("listStudies", "fetchStudy", "fetchSignedStudy", "readStatus", "listRetention", "keepUp"),
    *("listKeys", "makeKey", "removeKey", "readAuditLog", "isAlive", "isReady", "readMetrics"),
)
WITH_TOKEN = ("expireReports", "deleteStudy")
OWN_VIEWS: dict[str, Callable[..., Response]] = {"publishStudy": publish, "closeStudy": close}


ROUTES = Api("operator", __name__)
for _operation in (*studies.operations, *operator.operations, *health.operations):
    if _operation.name in SHARED:
        ROUTES.add(_operation)
    elif _operation.name in WITH_TOKEN:
        ROUTES.add(_operation._replace(view=with_token(_operation.view)))
    elif _operation.name in OWN_VIEWS:
        ROUTES.add(_operation._replace(view=OWN_VIEWS[_operation.name]))
serve_document(ROUTES, lambda: OPERATIONS)
OPERATIONS: tuple[Operation, ...] = (*ROUTES.operations, *api.operations)


def create_node_app(
    config: Settings | Mapping[str, object] | None = None,
    *,
    key_file: str | os.PathLike[str],
) -> Flask:
    """Build a node of secure sums as a WSGI application, on a database of `ldpkit init --as node`.

    Args:
        config: Settings, or a mapping of their names; None reads LDPKIT_* from the environment.
        key_file: the file of the node's keys.

    Returns:
        The Flask application.

    Raises:
        InputError: a setting or the keys are wrong, or the database cannot be used.
    """
    app = Flask("collector.nodes", static_folder=None)
    collector = Collector(config, utc_today)
    node = Node(NodeKeys.load(key_file), collector.database, collector.settings.body_limit)
    for study in unfinished_studies(node.database):
        # If shares did not fit, the node would refuse them permanently, and devices drop such shares.
        try:
            node.check_size(study)
        except StudyError as error:
            raise InputError(
                f"study {study.id} of this database: {error}; start with the key file and the body_limit "
                "with which it was published",
                code="settings.study_does_not_fit_node",
            ) from None
    app.extensions[EXTENSION] = collector
    app.extensions[NODE] = node
    handling.install(app)
    app.register_blueprint(api)
    app.register_blueprint(ROUTES)
    return app
