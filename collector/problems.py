"""Every way a request can fail, with its problem document (RFC 9457).

A type never changes meaning. 4xx is only for requests that can never succeed as sent, except 425 and 429,
which say when to retry. Devices drop a report after a refusal of a few types, if it names the digest of the
study that they answered and comes from the collector that published it; after any other refusal they keep it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ldp_client.documents.errors import EXIT_REFUSED, LdpkitError

TYPE_PREFIX = "urn:ldpkit:problem:"
MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True)
class Kind:
    """One kind of problem. advice: what the sender can do. retry_after: seconds, if a retry may succeed."""

    name: str
    status: int
    title: str
    advice: str
    retry_after: int | None = None

    @property
    def type(self) -> str:
        """The URI that programs compare."""
        return TYPE_PREFIX + self.name


@dataclass(frozen=True)
class StandardKind(Kind):
    """A kind that a standard defines, with its own type."""

    uri: str = ""

    @property
    def type(self) -> str:
        """The URI that programs compare."""
        return self.uri


# Devices follow this. After a restore or a new publication, a refusal names no digest or another one.
DROP = "Drop the report if `digest` is that of the study it answers; else keep it, and send it again later."

MALFORMED_JSON = Kind(
    "malformed-json", 400, "The body is not JSON", "Send one well-formed JSON value in UTF-8."
)
MALFORMED_ENCODING = Kind(
    "malformed-encoding", 400, "The body is not in its content encoding", "Compress the whole body once."
)
UNAUTHORIZED = Kind("unauthorized", 401, "A key is needed", "Send 'Authorization: Bearer <key>'.")
FORBIDDEN = Kind("forbidden", 403, "The key is for something else", "Use a key with the role that is named.")
SIGNATURE_REFUSED = Kind(
    "signature-refused", 403, "The signature is wrong", "Sign the study as it is, with a key that is trusted."
)
TICKET_NEEDED = Kind(
    "ticket-needed",
    403,
    "The study takes invited reports only",
    "Send the report by itself, with an unused ticket in the header LDPKit-Ticket.",
)
TICKET_NEEDED = Kind(
    "ticket-needed",
    401,
    "The study takes a token with each report",
    "Send the report by itself, with a token of the study's issuer: Authorization: PrivateToken token=….",
)
TICKET_INVALID = Kind(
    "ticket-invalid",
    401,
    "The token is not good for this study",
    "Send a token that the study's issuer signed for this version of it.",
)
TICKET_SPENT = Kind(
    "ticket-spent",
    409,
    "The token was used for another report",
    "Keep the report; each token lets one in, and the issuer gives each person one.",
)
WITHDRAWAL_UNPROVEN = Kind(
    "withdrawal-unproven",
    401,
    "A deletion needs the report's secret",
    "Send the secret that the device drew in the header LDPKit-Withdrawal, or the key of an operator.",
)
WITHDRAWAL_REFUSED = Kind(
    "withdrawal-refused",
    403,
    "The secret is another report's",
    "Send the secret that this report's id was made of; without one, an operator's key deletes it.",
)
TOO_MANY_DELETIONS = Kind(
    "too-many-deletions", 429, "Too many deletions at once", "Send the same request again later.", 1
)
STUDY_UNSIGNED = Kind(
    "study-unsigned", 404, "The study is not signed", "Publish it signed, or fetch it without signatures."
)
STUDY_UNKNOWN = Kind("study-unknown", 404, "No such study", "Check the study's id and the address.")
VERSION_UNKNOWN = Kind(
    "version-unknown",
    404,
    "No such version of the study",
    "Keep the report and send it again later: its version may be published yet, or again after a restore.",
)
REPORT_UNKNOWN = Kind(
    "report-unknown", 404, "No such report", "There is nothing to withdraw; check the report's id."
)
STUDY_CONFLICT = Kind(
    "study-conflict",
    409,
    "The version conflicts with what is published",
    "Raise the version to publish a change; a changed memoized question, or version 51, needs a new id.",
)
STUDY_OUTDATED = Kind(
    "study-outdated",
    409,
    "A later version is published",
    "Raise the version above the published one.",
)
STUDY_FINISHED = Kind(
    "study-finished",
    409,
    "The study is closed",
    "Open it again if that is possible, or publish under a new id.",
)
SUMMARY_IMPOSSIBLE = Kind(
    "summary-impossible", 409, "This study has no summary", "Export the reports and fit them."
)
SUMMARY_TOO_COSTLY = Kind(
    "summary-too-costly",
    409,
    "The summary takes too long to count",
    "Fetch the export, and count it with `ldpkit summarize`.",
)
REPORT_CONFLICT = Kind(
    "report-conflict",
    409,
    "Another report has this id",
    DROP,
)
REPORTS_DELETED = Kind(
    "reports-deleted",
    410,
    "Reports were deleted since the export began",
    "Export again from the beginning: the part so far no longer matches the collector's reports.",
)
STUDY_DELETED = Kind(
    "study-deleted", 410, "The study was deleted", "Ask no more people: it takes no reports."
)
STUDY_CLOSED = Kind(
    "study-closed",
    410,
    "The study is closed to reports",
    "Keep the report until 30 days after the study's last day; then drop it if `digest` is its study's.",
)
REPORT_WITHDRAWN = Kind("report-withdrawn", 410, "The report was withdrawn", DROP)
SUM_FIXED = Kind(
    "sum-fixed",
    409,
    "The share is part of a sum",
    "It can no longer be removed; its study is closed.",
)
STUDY_OPEN = Kind("study-open", 409, "The study is still open", "Close it first.")
SET_CONFLICT = Kind(
    "set-conflict",
    409,
    "The node is bound to another set",
    "Ask for the sum over its set.",
)
SHARES_GONE = Kind(
    "shares-gone",
    410,
    "Shares are gone",
    "This study cannot be summed any more: ask the devices again in another.",
)
STATEMENT_INVALID = Kind("statement-invalid", 422, "The request is not valid", "Correct the field.")
BODY_TOO_LARGE = Kind("body-too-large", 413, "The body is too large", "Send fewer reports in one request.")
MEDIA_TYPE_UNSUPPORTED = Kind(
    "media-type-unsupported",
    415,
    "The body's form is not supported",
    "Send application/json, as it is or in gzip; shares as application/octet-stream.",
)
STUDY_INVALID = Kind(
    "study-invalid", 422, "The study document is not valid", "Correct the field and publish again."
)
REPORT_INVALID = Kind("report-invalid", 422, "The report is not valid for this study", DROP)
BATCH_INVALID = Kind(
    "batch-invalid", 422, "The body is not a batch of reports", 'Send {"reports": [report, ...]}.'
)
BATCH_WRONG = Kind(
    "batch-wrong",
    422,
    "Too many reports of the batch are wrong",
    "Check them against the study, remove the reports that `failed` lists, and send the rest.",
)
PARAMETER_INVALID = Kind(
    "parameter-invalid", 422, "A query parameter is not valid", "Correct the parameter that `field` names."
)
STUDY_NOT_OPEN = Kind(
    "study-not-open", 425, "The study is not open yet", "Keep the report and send it later.", 3600
)
TOO_MANY_REPORTS = Kind(
    "too-many-reports", 429, "Too many reports at once", "Send the same request again later.", 1
)
TOO_MANY_KEYS = Kind(
    "too-many-keys", 429, "Too many wrong keys", "Send the key that this collector's operator made.", 1
)
INTERNAL = Kind("internal", 500, "The collector failed", "Send the same request again later.")
UNAVAILABLE = Kind(
    "unavailable", 503, "The database cannot be used just now", "Send the same request again.", 5
)
OVERLOADED = Kind(
    "overloaded", 503, "The collector has too much to write", "Send the same request again later.", 1
)
DISK_FULL = Kind("disk-full", 507, "The collector's disk is full", "Send the same request again later.", 60)

OHTTP_KEY = StandardKind(
    "ohttp-key",
    400,
    "The gateway has no such key",
    "Keep the report, and update the app: its key is no longer the collector's.",
    uri="https://iana.org/assignments/http-problem-types#ohttp-key",
)
OHTTP_MALFORMED = Kind(
    "ohttp-malformed",
    400,
    "The request is not encapsulated for this gateway",
    "Send one message/ohttp-req as RFC 9458 has it, for a key that `ldpkit ohttp show` prints.",
)
OBLIVIOUS_ABSENT = Kind(
    "oblivious-absent",
    404,
    "This collector is no gateway",
    "Make its keys with `ldpkit ohttp rotate`, and name their file in the setting ohttp_keys.",
)
OBLIVIOUS_NEEDED = Kind(
    "oblivious-needed", 403, "Devices are answered only through a relay", "Use the app and its relay."
)
OBLIVIOUS_ROUTE = Kind(
    "oblivious-route",
    404,
    "Not through the gateway",
    "Inside are PUT and DELETE of a report, and GET of a study, signed or not.",
)
OBLIVIOUS_REQUEST = Kind(
    "oblivious-request",
    400,
    "The encapsulated request is not one of a device",
    "Send one binary HTTP request of known length (RFC 9292), without fields of a connection.",
)
ANSWER_TOO_LARGE = Kind(
    "answer-too-large",
    406,
    "The answer does not fit",
    "Tell the study's contact that its document is too long for apps that use a relay.",
)

KINDS = tuple(value for value in list(globals().values()) if isinstance(value, Kind))


class ProblemError(LdpkitError):
    """A refused request; its code is the problem's type without the prefix.

    field: dotted path in the body, "" for all of it, or None.
    more: further members of the document, for programs.
    """

    exit_code = EXIT_REFUSED

    def __init__(
        self,
        kind: Kind,
        detail: str,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(f"{kind.name}: {detail}", kind.name)
        self.kind = kind
        self.detail = detail
        self.field = field
        self.headers = headers or {}
        self.more = more or {}

    def naming(self, digest: str) -> ProblemError:
        """Return this refusal of a report with the digest of the study as it is published here.

        It is a copy, because several requests may share the raised error. A refusal that time can lift gets
        no digest.
        """
        if self.kind.retry_after is not None:
            return self
        return ProblemError(self.kind, self.detail, self.field, self.headers, {**self.more, "digest": digest})

    def document(self) -> dict[str, object]:
        """Return the members of the problem document."""
        document: dict[str, object] = {
            "type": self.kind.type,
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": self.detail,
            "advice": self.kind.advice,
        }
        if self.field is not None:
            document["field"] = self.field
        return {**document, **self.more}

    def answer(self) -> tuple[int, dict[str, str], str]:
        """Return the HTTP answer: status, headers except the media type, and the problem document."""
        retry = {} if self.kind.retry_after is None else {"Retry-After": str(self.kind.retry_after)}
        return self.kind.status, {**retry, **self.headers}, json.dumps(self.document(), sort_keys=True)


def unknown_study(study_id: str) -> ProblemError:
    """Return the problem of a study that was never published here."""
    return ProblemError(STUDY_UNKNOWN, f"no study {study_id[:64]!r} is published here")


def deleted_study(study_id: str) -> ProblemError:
    """Return the problem of a study that was deleted."""
    return ProblemError(STUDY_DELETED, f"study {study_id} was deleted by its operator")


def deleted_reports(study_id: str) -> ProblemError:
    """Return the problem of a deleted study whose reports are requested."""
    return ProblemError(STUDY_DELETED, f"the reports of {study_id} were deleted by its operator")


def broken_off(study_id: str) -> ProblemError:
    """Return the problem of an export during which reports were deleted, for example by retention."""
    return ProblemError(
        REPORTS_DELETED, f"reports of {study_id} were deleted while they were exported: run it again"
    )
