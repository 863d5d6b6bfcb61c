"""Publish, fetch and close studies."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, make_response, request, url_for

from collector import publishing, queries
from collector.auth import operator_only
from collector.body import json_body
from collector.context import current_collector
from collector.rules import Rules
from schemas import Study
from schemas.study import MAX_BYTES

studies = Blueprint("studies", __name__, url_prefix="/v1/studies")
CACHE_CONTROL = "public, max-age=60"


@studies.post("")
@operator_only
def publish() -> Response:
    """201 for a new study or version, 200 for one that is published already."""
    study = Study(json_body(MAX_BYTES))
    Rules.of(study)
    with current_collector().database.write() as session:
        is_new = publishing.publish(session, study)
    response = jsonify(id=study.id, version=study.version, digest=study.digest)
    response.status_code = 201 if is_new else 200
    response.headers["Location"] = url_for("studies.fetch", study_id=study.id)
    return response


@studies.get("/<study_id>")
def fetch(study_id: str) -> Response:
    """The current version's canonical bytes; its digest is the ETag."""
    with current_collector().database.read() as session:
        document = queries.current_document(session, study_id)
    if document is None:
        raise publishing.unknown_study(study_id)
    response = make_response(document.canonical)
    response.content_type = "application/json"
    response.headers["Cache-Control"] = CACHE_CONTROL
    response.set_etag(document.digest)
    response.make_conditional(request)
    return response


@studies.post("/<study_id>/close")
@operator_only
def close(study_id: str) -> Response:
    """End the study for good."""
    with current_collector().database.write() as session:
        row = publishing.close(session, study_id)
    return jsonify(id=row.id, version=row.version, closed=row.closed)
