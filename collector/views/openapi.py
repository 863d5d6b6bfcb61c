"""The OpenAPI documents of the API: a collector's, and a node's."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from collector import problems
from collector.metrics import MEDIA_TYPE as METRICS_MEDIA_TYPE
from collector.views.openapi_parts import (
    AFTER,
    BODY,
    ENCODING,
    EXPORTS,
    FORMAT,
    INVITATION_HEADER,
    JSON,
    KEY,
    REPORT_ID,
    RIGHT,
    SCHEMAS,
    STUDY_ID,
    TEXT,
    THROUGH,
    UPLOAD,
    VERSION,
    WITHDRAWAL_HEADER,
    WRITE,
    Document,
    Operation,
    reference,
)
from collector.views.openapi_shares import SHARES


def _json(name: str) -> Document:
    return {JSON: reference(name)}


STUDIES = (
    Operation(
        "post",
        "/v1/studies",
        "publishStudy",
        "Publish a study, or a new version of one; a published version never changes. A signed study whose "
        "signature the collector trusts needs no key.",
        {200: ("Published before", _json("Published")), 201: ("Published", _json("Published"))},
        (
            *KEY,
            *BODY,
            problems.MALFORMED_ENCODING,
            problems.SIGNATURE_REFUSED,
            problems.STUDY_INVALID,
            problems.STUDY_CONFLICT,
            problems.STUDY_OUTDATED,
            problems.STUDY_FINISHED,
            *WRITE,
        ),
        (ENCODING,),
        {JSON: {"anyOf": [reference("Study"), reference("SignedStudy")]}},
    ),
    Operation(
        "get",
        "/v1/studies/{study_id}",
        "fetchStudy",
        "A version's canonical bytes, the current one's unless `version` says otherwise.",
        {200: ("The document; its digest is the ETag", _json("Study")), 304: ("Unchanged", {})},
        (problems.STUDY_UNKNOWN, problems.PARAMETER_INVALID),
        (STUDY_ID, VERSION),
    ),
    Operation(
        "get",
        "/v1/studies/{study_id}/signed",
        "fetchSignedStudy",
        "A version with its signatures, the current one unless `version` says otherwise.",
        {200: ("The signed study", _json("SignedStudy")), 304: ("Unchanged", {})},
        (problems.STUDY_UNKNOWN, problems.STUDY_UNSIGNED, problems.PARAMETER_INVALID),
        (STUDY_ID, VERSION),
    ),
    Operation(
        "post",
        "/v1/studies/{study_id}/close",
        "closeStudy",
        "Take no more reports, for good.",
        {200: ("Closed", _json("Closed"))},
        (*KEY, problems.STUDY_UNKNOWN, *WRITE),
        (STUDY_ID,),
    ),
)
REPORTS = (
    Operation(
        "put",
        "/v1/studies/{study_id}/reports/{report_id}",
        "uploadReport",
        "Store one report, durably and once; sending it again does no harm.",
        {200: ("Stored before", _json("Receipt")), 201: ("Stored", _json("Receipt"))},
        (
            *UPLOAD,
            problems.REPORT_INVALID,
            problems.INVITATION_NEEDED,
            problems.REPORT_CONFLICT,
            problems.STUDY_CLOSED,
            problems.REPORT_WITHDRAWN,
            problems.STUDY_NOT_OPEN,
        ),
        (STUDY_ID, REPORT_ID, ENCODING, INVITATION_HEADER),
        _json("Report"),
    ),
    Operation(
        "post",
        "/v1/studies/{study_id}/reports",
        "uploadReports",
        "Store many reports; those that fail are listed and the others are durable.",
        {200: ("What became of each", _json("BatchResult"))},
        (*UPLOAD, problems.BATCH_INVALID, problems.BATCH_WRONG),
        (STUDY_ID, ENCODING),
        _json("Batch"),
    ),
    Operation(
        "delete",
        "/v1/studies/{study_id}/reports/{report_id}",
        "withdrawReport",
        "Delete a report for good; only its id is kept, so that no late copy brings it back.",
        {200: ("Withdrawn", _json("Withdrawal"))},
        (*RIGHT, problems.STUDY_UNKNOWN, problems.REPORT_UNKNOWN, problems.PARAMETER_INVALID, *WRITE),
        (STUDY_ID, REPORT_ID, WITHDRAWAL_HEADER),
    ),
    Operation(
        "get",
        "/v1/studies/{study_id}/export",
        "exportReports",
        "Every report in the order of the ids; `after` resumes, `through` a past day fixes the contents.",
        {200: ("The reports; NDJSON ends with a line that counts them, no form cut off reads well", EXPORTS)},
        (*KEY, problems.STUDY_UNKNOWN, problems.PARAMETER_INVALID, problems.OVERLOADED),
        (STUDY_ID, FORMAT, AFTER, THROUGH),
    ),
    Operation(
        "get",
        "/v1/studies/{study_id}/summary",
        "readSummary",
        "All that a posterior needs of one version's reports, as they are now.",
        {200: ("The summary", _json("Summary")), 304: ("Unchanged", {})},
        (
            *KEY,
            problems.STUDY_UNKNOWN,
            problems.SUMMARY_IMPOSSIBLE,
            problems.SUMMARY_TOO_COSTLY,
            problems.PARAMETER_INVALID,
        ),
        (STUDY_ID, VERSION),
    ),
)
HEALTH = (
    Operation(
        "get", "/healthz", "isAlive", "Whether the process answers.", {200: ("Alive", _json("Health"))}
    ),
    Operation(
        "get", "/readyz", "isReady", "Whether the database answers.", {200: ("Ready", _json("Health"))}
    ),
    Operation(
        "get",
        "/metrics",
        "readMetrics",
        "Counts of reports and commits for Prometheus.",
        {200: ("Prometheus' text format", {METRICS_MEDIA_TYPE: TEXT})},
        KEY,
    ),
    Operation(
        "get",
        "/openapi.json",
        "readApi",
        "This document.",
        {200: ("OpenAPI", {JSON: {"type": "object"}})},
    ),
)


OPERATIONS = (*STUDIES, *REPORTS, *HEALTH)
NODE_OPERATIONS = (*STUDIES, *SHARES, *HEALTH)


def openapi_document(operations: Sequence[Operation]) -> Document:
    """The OpenAPI 3.1 document of a collector or a node."""
    paths: dict[str, Document] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = operation.describe()
    return {
        "openapi": "3.1.0",
        "info": {"title": "ldpkit collector", "version": version("ldpkit")},
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }
