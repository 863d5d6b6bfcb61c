"""A node's routes: take sealed shares from devices, and close a study with the aggregator."""

from __future__ import annotations

from base64 import b64encode

from flask import Blueprint, Response, jsonify, make_response, request

from collector.context import current_collector
from collector.problems import MEDIA_TYPE_UNSUPPORTED, SUM_FIXED, ProblemError
from collector.reports import intake
from collector.reports.withdrawing import WITHDRAWN, withdraw
from collector.secure_sum.drawing import COMMITMENTS, Drawing
from collector.storage import queries
from collector.storage.keys import Role
from collector.views.auth import proves_withdrawal, requires
from collector.views.bodies import body_bytes, json_body, operators_json
from collector.views.parameters import report_id_bytes
from collector.views.refusing import refuse_upload
from ldp_client.documents.errors import StatementError
from ldp_client.documents.fields import Hex, Record

shares = Blueprint("shares", __name__, url_prefix="/v1/studies/<study_id>")
shares.register_error_handler(Exception, refuse_upload)

BINARY = "application/octet-stream"
JSON = "application/json"
WANTED = Record({"set": Hex(64)})
ALL_COMMITMENTS = Record({"commitments": COMMITMENTS})


@shares.put("/shares/<report_id>")
def put(study_id: str, report_id: str) -> Response:
    """201 once the sealed share is durable, 200 if it was before."""
    collector = current_collector()
    report_id_bytes(report_id, "report_id")
    study = collector.node_part().opener(study_id).study
    with intake.naming_study(collector, study_id, study.version):
        share = collector.node_part().take(study_id, report_id, _binary_body())
        receipt = intake.submit_one(collector, study_id, share, request.headers.get(intake.INVITATION))
    response = jsonify(id=report_id, result=receipt.value)
    response.status_code = 201 if receipt is intake.Receipt.STORED else 200
    return response


@shares.delete("/shares/<report_id>")
def delete(study_id: str, report_id: str) -> Response:
    """A receipt once the share is gone for good, or will be refused. After closing the set is fixed."""
    identifier = report_id_bytes(report_id, "report_id")
    by_device = proves_withdrawal(report_id)
    collector = current_collector()
    withdraw(collector, study_id, identifier, by_device, refuse=_refuse_fixed)
    return jsonify(id=report_id, result=WITHDRAWN)


@shares.get("/shares/count")
@requires(Role.OPERATE)
def count(study_id: str) -> Response:
    """How many shares there are, before the study is closed too."""
    return jsonify(shares=current_collector().node_part().share_count(study_id))


@shares.get("/shares")
@requires(Role.OPERATE)
def list_ids(study_id: str) -> Response:
    """The report ids of a closed study, 16 bytes each, ascending."""
    response = make_response(b"".join(current_collector().node_part().report_ids(study_id)))
    response.content_type = BINARY
    return response


@shares.post("/commitment")
@requires(Role.OPERATE)
def commit(study_id: str) -> Response:
    """What the node holds and the hash of its nonce, signed; the same at every call."""
    collector = current_collector()
    node = collector.node_part()
    return jsonify(collector.writer.act(lambda session: node.commit(session, study_id)).to_document())


@shares.post("/nonce")
@requires(Role.OPERATE)
def show(study_id: str) -> Response:
    """The node's nonce, for these commitments of all nodes and no others ever."""
    collector = current_collector()
    node = collector.node_part()
    commitments = ALL_COMMITMENTS.read(json_body(), "", StatementError)["commitments"]
    nonce = collector.writer.act(lambda session: node.show(session, study_id, commitments))
    return jsonify(nonce=nonce.hex())


@shares.get("/drawing")
@requires(Role.OPERATE)
def drawing(study_id: str) -> Response:
    """What the set was drawn by that the node is bound to; null before."""
    response = make_response(current_collector().node_part().drawing(study_id) or b"null")
    response.content_type = JSON
    return response


@shares.post("/set")
@requires(Role.OPERATE)
def confirm(study_id: str) -> Response:
    """Bind the node to the set that was drawn; its signed statement."""
    collector = current_collector()
    node = collector.node_part()
    drawn = Drawing.from_document(operators_json(node.drawing_limit))
    return jsonify(collector.writer.act(lambda session: node.confirm(session, study_id, drawn)).to_document())


@shares.post("/sum")
@requires(Role.OPERATE)
def total(study_id: str) -> Response:
    """The sum over the confirmed set, and the node's signed statement; the same at every call."""
    collector = current_collector()
    wanted = WANTED.read(json_body(), "", StatementError)
    statement, words = collector.node_part().total(study_id, wanted["set"])
    collector.writer.act(lambda session: collector.node_part().keep(session, study_id, words))
    return jsonify(statement=statement.to_document(), total=b64encode(words).decode())


def _refuse_fixed(study: queries.StudyState) -> None:
    if study.closed:
        raise ProblemError(SUM_FIXED, "the study was closed")


def _binary_body() -> bytes:
    if request.mimetype != BINARY:
        raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the body must be {BINARY}")
    return body_bytes()
