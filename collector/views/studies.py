"""Publish, fetch and close studies."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, make_response, request, url_for

from collector.bodies.reading import json_body
from collector.context import current_collector
from collector.http.auth import requires
from collector.http.parameters import whole_parameter
from collector.operator.keys import Role
from collector.storage import queries
from collector.studies import publishing
from collector.studies.rules import Rules
from schemas import Study
from schemas.errors import StudyError
from schemas.study import MAX_BYTES

studies = Blueprint("studies", __name__, url_prefix="/v1/studies")
CACHE_CONTROL = "public, max-age=60"


@studies.post("")
@requires(Role.PUBLISH)
def publish() -> Response:
    """201 for a new study or version, 200 for one that is published already."""
    study = Study(json_body(MAX_BYTES))
    Rules.of(study)
    collector = current_collector()
    if collector.node is None and study.route is not None:
        raise StudyError("route", "belongs to the nodes that it names: publish the study there")
    publish_here = publishing.publish if collector.node is None else collector.node.publish
    is_new = collector.writer.act(lambda session: publish_here(session, study))
    response = jsonify(id=study.id, version=study.version, digest=study.digest)
    response.status_code = 201 if is_new else 200
    response.headers["Location"] = url_for("studies.fetch", study_id=study.id)
    return response


@studies.get("/<study_id>")
def fetch(study_id: str) -> Response:
    """A version's canonical bytes, the current one's unless `version` says otherwise; ETag: its digest."""
    version = whole_parameter("version")
    with current_collector().database.read() as session:
        document = queries.find_document(session, study_id, version)
    if document is None:
        raise publishing.unknown_study(study_id)
    response = make_response(document.canonical)
    response.content_type = "application/json"
    response.headers["Cache-Control"] = CACHE_CONTROL
    response.set_etag(document.digest)
    response.make_conditional(request)
    return response


@studies.post("/<study_id>/close")
@requires(Role.PUBLISH)
def close(study_id: str) -> Response:
    """End the study for good."""
    version = current_collector().writer.act(lambda session: publishing.close(session, study_id))
    return jsonify(id=study_id, version=version, closed=True)
