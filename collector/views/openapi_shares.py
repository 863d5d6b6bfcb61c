"""A node's operations: shares in, and one sum out."""

from __future__ import annotations

from collector import problems
from collector.views.openapi_parts import (
    COUNT,
    ENCODING,
    INVITATION_HEADER,
    JSON,
    KEY,
    REPORT_ID,
    RIGHT,
    STUDY_ID,
    TEXT,
    WITHDRAWAL_HEADER,
    WRITE,
    Operation,
    object_of,
    reference,
)
from ldp_client.documents.fields import Hex

BINARY = "application/octet-stream"
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

SHARES = (
    Operation(
        "put",
        "/v1/studies/{study_id}/shares/{report_id}",
        "uploadShare",
        "Store one device's sealed share, durably and once; sending it again does no harm.",
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
            problems.INVITATION_NEEDED,
            problems.STUDY_CLOSED,
            problems.REPORT_WITHDRAWN,
            problems.STUDY_NOT_OPEN,
            problems.TOO_MANY_REPORTS,
            *WRITE,
        ),
        (STUDY_ID, REPORT_ID, ENCODING, INVITATION_HEADER),
        BYTES,
        "The share, sealed to this node.",
    ),
    Operation(
        "delete",
        "/v1/studies/{study_id}/shares/{report_id}",
        "withdrawShare",
        "Delete a share for good, while the study is open.",
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
        "Commit the node to what it holds and to a nonce, for ever.",
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
        "What the set was drawn by that the node is bound to; null before.",
        {200: ("The drawing", {JSON: {"type": ["object", "null"]}})},
        CLOSED,
        (STUDY_ID,),
    ),
    Operation(
        "post",
        "/v1/studies/{study_id}/set",
        "confirmSet",
        "Bind the node to the set that all nodes drew, for ever.",
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
        "Commitments and nonces of all nodes; the ids that any holds, and 4 bytes each of who holds it.",
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
