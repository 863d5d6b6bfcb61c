"""Publish, fetch and close studies."""

from collections.abc import Callable

from flask import Response, jsonify, make_response, request
from sqlalchemy.orm import Session

from collector import audit_log, store
from collector.api.auth import acting_key, require_reach
from collector.api.bodies import json_and_bytes
from collector.api.openapi import JSON, Api, reference
from collector.api.parameters import ENCODING, VERSION
from collector.context import current_collector
from collector.keys import Role
from collector.models import DocumentRow
from collector.problems import BODY_TOO_LARGE, ProblemError, deleted_study
from collector.reports.rules import Rules
from collector.studies import Published, close, fetch_signed, publish, reopen
from ldp_client.device.outbox import MOST_BYTES as MOST_SENT_BYTES
from ldp_client.device.requests import CLOSED, STUDY_STATE
from ldp_client.documents.errors import StudyError
from ldp_client.documents.signed import FORMAT
from ldp_client.documents.signed import MAX_BYTES as MAX_SIGNED_BYTES
from ldp_client.documents.study import MAX_BYTES
from schemas import Study
from schemas.study import SignedStudy
from schemas.warnings import require_keys, study_in_words

studies = Api("studies", __name__)
CACHE_CONTROL = "public, max-age=60"
PUBLISHABLE = {JSON: {"anyOf": [reference("Study"), reference("SignedStudy")]}}


@studies.operation(
    "post",
    "/v1/studies",
    "Published",
    statuses=(200, 201),
    headers=(ENCODING,),
    body=PUBLISHABLE,
    role=Role.PUBLISH,
    of_some=True,
)
def publish_study() -> Response:
    """Publish a study, or a new version of one; a published version never changes."""
    return publish_by(publish, read_publishable())


def read_publishable() -> SignedStudy:
    """Read the study in the body, and check that this collector would take its reports.

    Devices drop refused reports. Raises ProblemError and StudyError.
    """
    signed, limit = read_signed(), current_collector().settings.body_limit
    if signed.study.protocol is not None:
        raise StudyError(
            "protocol",
            "belongs to the nodes that it names: publish the study there",
            code="study.belongs_to_nodes",
        )
    size = Rules(signed.study).form.size
    if size > (most := min(limit, MOST_SENT_BYTES)):
        raised = ", or raise body_limit" if limit < MOST_SENT_BYTES else ""
        problem = f"make reports of {size} bytes, and {most} can be sent: ask less{raised}"
        raise StudyError("questions", problem, code="study.reports_too_large")
    return signed


def publish_by(publish_here: Callable[[Session, Study], bool], signed: SignedStudy) -> Response:
    """Publish a study with this function, and return the response."""
    collector, study, host, by = current_collector(), signed.study, request.host, acting_key().name

    def act(session: Session) -> bool:
        # An earlier version is rejected even if it is signed.
        is_new = publish_here(session, study)
        document = store.require_document(session, study.id)
        for signature in signed.signatures:
            store.add_signature(session, document, signature)
        if is_new:
            # A published version stays valid, and may be published again with more signatures.
            _check_new(study, host)
            audit_log.record(session, by, "publish", study.id, f"version {study.version}")
        return is_new

    is_new = collector.writer.act(act)
    collector.has_changed(study.id)
    response = jsonify(id=study.id, version=study.version, digest=study.digest)
    response.status_code = 201 if is_new else 200
    response.headers["Location"] = f"{request.script_root}/v1/studies/{study.id}"
    return response


def _check_new(study: Study, host: str) -> None:
    """Raise StudyError if a stratum has no key, or if this collector is the study's issuer.

    An issuer could join people and reports.
    """
    require_keys(study)
    tickets = study.channel.tickets if study.channel is not None else None
    if tickets is not None and tickets.name.removesuffix(":443") == host.lower():
        raise StudyError(
            "channel.tickets.issuer",
            "is this collector: name an issuer that others run, at another address",
            code="study.issuer_is_collector",
        )


def read_signed() -> SignedStudy:
    """Read the study in the body; a plain study has no signatures.

    Raises ProblemError also for a study that the request's key is not for, and StudyError.
    """
    document, body = json_and_bytes(MAX_SIGNED_BYTES)
    if isinstance(document, dict) and document.get("format") == FORMAT:
        signed = SignedStudy.from_json(body)
    elif len(body) > MAX_BYTES:
        raise ProblemError(BODY_TOO_LARGE, f"the body is above {MAX_BYTES} bytes")
    else:
        signed = SignedStudy(Study(document), [])
    require_reach(acting_key(), signed.study.id)
    return signed


@studies.operation(
    "post", "/v1/check", "Checked", headers=(ENCODING,), body=PUBLISHABLE, role=Role.PUBLISH, of_some=True
)
def check_study() -> Response:
    """Check a draft as publishing does, and describe it in words; nothing is stored."""
    study = read_publishable().study
    _check_new(study, request.host)
    lines, warnings = study_in_words(study)
    return jsonify(id=study.id, digest=study.digest, lines=lines, warnings=warnings)


@studies.operation("get", "/v1/studies/{study_id}", "Study", statuses=(200, 304), query=(VERSION,))
def fetch_study(study_id: str, version: int | None) -> Response:
    """Return a version's canonical bytes, by default the current version's; the ETag is their digest."""
    collector = current_collector()
    current = _find_served(study_id, version)
    document: Published | DocumentRow = current
    if version not in (None, current.version):
        with collector.database.read() as session:
            document = store.require_document(session, study_id, version)
    response = _served(document.canonical, current)
    response.set_etag(document.digest)
    response.make_conditional(request)
    return response


def _find_served(study_id: str, version: int | None) -> Published:
    """Return the document that is published under that id. Raises ProblemError if there is none any more.

    A deleted study is served if its version is named, for devices that withdraw their report.
    """
    current = current_collector().current.require(study_id)
    if version is None and current.state.deleted:
        raise deleted_study(study_id)
    return current


def _served(document: bytes | str, current: Published) -> Response:
    """Return an answer with a document, and a header that says whether its study still takes reports.

    The document never changes, and an answer to a closed study would waste its privacy budget.
    """
    response = make_response(document)
    response.content_type = "application/json"
    response.headers["Cache-Control"] = CACHE_CONTROL
    is_open = not current.state.closed
    response.headers[STUDY_STATE] = "open" if is_open else CLOSED
    return response


@studies.operation(
    "get", "/v1/studies/{study_id}/signed", "SignedStudy", statuses=(200, 304), query=(VERSION,)
)
def fetch_signed_study(study_id: str, version: int | None) -> Response:
    """Return a version with its signatures, for devices that accept only signed studies."""
    current = _find_served(study_id, version)
    with current_collector().database.read() as session:
        signed = fetch_signed(session, study_id, version)
    response = _served(signed, current)
    response.add_etag()
    response.make_conditional(request)
    return response


@studies.operation("post", "/v1/studies/{study_id}/close", "Closed", role=Role.PUBLISH)
def close_study(study_id: str) -> Response:
    """Close a study."""
    return change_state(study_id, True, lambda session: close(session, study_id))


@studies.operation("post", "/v1/studies/{study_id}/open", "Opened", role=Role.PUBLISH)
def open_study(study_id: str) -> Response:
    """Reopen a study that was closed."""
    return change_state(study_id, False, lambda session: reopen(session, study_id))


def change_state(study_id: str, closed: bool, change: Callable[[Session], int]) -> Response:
    """Close or open a study. change: does it, and returns the study's version."""
    collector, by = current_collector(), acting_key().name

    def act(session: Session) -> int:
        before = store.study_state(session, study_id)
        version = change(session)
        if before is None or before.closed != closed:
            audit_log.record(session, by, "close" if closed else "open", study_id)
        return version

    version = collector.writer.act(act)
    collector.has_changed(study_id)
    return jsonify(id=study_id, version=version, closed=closed)
