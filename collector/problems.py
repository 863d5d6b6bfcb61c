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
    """One kind of problem.

    Attributes:
        name: what programs know it by.
        status: the HTTP status.
        advice: what the sender can do.
        retry_after: seconds, if a retry may succeed.
        uri: the type that a standard defines, "" for a type of ours.
    """

    name: str
    status: int
    advice: str
    retry_after: int | None = None
    uri: str = ""

    @property
    def type(self) -> str:
        """The URI that programs compare."""
        return self.uri or TYPE_PREFIX + self.name

    @property
    def title(self) -> str:
        """The name in words."""
        return self.name.replace("-", " ").capitalize()


# Devices follow this. After a restore or a new publication, a refusal names no digest or another one.
DROP = "Drop the report if `digest` is that of the study it answers; else keep it, and send it again later."

MALFORMED_JSON = Kind("malformed-json", 400, "Send one well-formed JSON value in UTF-8.")
MALFORMED_ENCODING = Kind("malformed-encoding", 400, "Compress the whole body once.")
UNAUTHORIZED = Kind("unauthorized", 401, "Send 'Authorization: Bearer <key>'.")
FORBIDDEN = Kind("forbidden", 403, "Use a key with the role that is named.")
TICKET_NEEDED = Kind(
    "ticket-needed", 401, "Send one report with an unused ticket in LDPKit-Ticket, or with its token."
)
TICKET_INVALID = Kind(
    "ticket-invalid", 401, "Send an unused ticket of this study, or a token for this version of it."
)
TICKET_SPENT = Kind("ticket-spent", 409, "Keep the report, and ask for another ticket.")
WITHDRAWAL_UNPROVEN = Kind(
    "withdrawal-unproven", 401, "Send the report's secret in LDPKit-Withdrawal, or an operator's key."
)
WITHDRAWAL_REFUSED = Kind(
    "withdrawal-refused", 403, "Send the secret of this report's id, or an operator's key."
)
TOO_MANY_DELETIONS = Kind("too-many-deletions", 429, "Send the same request again later.", 1)
STUDY_UNSIGNED = Kind("study-unsigned", 404, "Publish it signed, or fetch it without signatures.")
STUDY_UNKNOWN = Kind("study-unknown", 404, "Check the study's id and the address.")
VERSION_UNKNOWN = Kind(
    "version-unknown", 404, "Keep the report and send it again later: the version may be published yet."
)
REPORT_UNKNOWN = Kind("report-unknown", 404, "There is nothing to withdraw; check the report's id.")
STUDY_CONFLICT = Kind("study-conflict", 409, "Raise the version, or use a new id if the detail asks for it.")
STUDY_OUTDATED = Kind("study-outdated", 409, "Raise the version above the published one.")
STUDY_FINISHED = Kind("study-finished", 409, "Open it again if that is possible, or publish under a new id.")
SUMMARY_IMPOSSIBLE = Kind("summary-impossible", 409, "Export the reports and fit them.")
SUMMARY_TOO_COSTLY = Kind("summary-too-costly", 409, "Export, and count with `ldpkit summarize`.")
REPORT_CONFLICT = Kind("report-conflict", 409, DROP)
REPORTS_DELETED = Kind("reports-deleted", 410, "Export again from the beginning.")
STUDY_DELETED = Kind("study-deleted", 410, "Stop asking people: it takes no reports.")
STUDY_CLOSED = Kind(
    "study-closed",
    410,
    "Keep the report until 30 days after the study's last day; then drop it if `digest` is its study's.",
)
REPORT_WITHDRAWN = Kind("report-withdrawn", 410, DROP)
SUM_FIXED = Kind("sum-fixed", 409, "It can no longer be removed; its study is closed.")
STUDY_OPEN = Kind("study-open", 409, "Close it first.")
SET_CONFLICT = Kind("set-conflict", 409, "Ask for the sum over its set.")
SHARES_GONE = Kind("shares-gone", 410, "Ask the devices again, in another study.")
STATEMENT_INVALID = Kind("statement-invalid", 422, "Correct the field.")
BODY_TOO_LARGE = Kind("body-too-large", 413, "Send a smaller body, such as fewer reports in one request.")
MEDIA_TYPE_UNSUPPORTED = Kind(
    "media-type-unsupported", 415, "Send application/json, or shares as application/octet-stream."
)
STUDY_INVALID = Kind("study-invalid", 422, "Correct the field and publish again.")
REPORT_INVALID = Kind("report-invalid", 422, DROP)
BATCH_INVALID = Kind("batch-invalid", 422, 'Send {"reports": [report, ...]}.')
BATCH_WRONG = Kind("batch-wrong", 422, "Remove the reports that `failed` lists, and send the rest.")
PARAMETER_INVALID = Kind("parameter-invalid", 422, "Correct the parameter that `field` names.")
STUDY_NOT_OPEN = Kind("study-not-open", 425, "Keep the report and send it later.", 3600)
TOO_MANY_REPORTS = Kind("too-many-reports", 429, "Send the same request again later.", 1)
TOO_MANY_KEYS = Kind("too-many-keys", 429, "Send the key that this collector's operator made.", 1)
INTERNAL = Kind("internal", 500, "Send the same request again later.")
UNAVAILABLE = Kind("unavailable", 503, "Send the same request again.", 5)
OVERLOADED = Kind("overloaded", 503, "Send the same request again later.", 1)
DISK_FULL = Kind("disk-full", 507, "Send the same request again later.", 60)

OHTTP_KEY = Kind(
    "ohttp-key",
    400,
    "Keep the report, and update the app: its key is no longer the collector's.",
    uri="https://iana.org/assignments/http-problem-types#ohttp-key",
)
OHTTP_MALFORMED = Kind("ohttp-malformed", 400, "Send one message/ohttp-req (RFC 9458) for a key in use.")
OBLIVIOUS_ABSENT = Kind("oblivious-absent", 404, "Set ohttp_keys to a file of `ldpkit ohttp FILE --rotate`.")
OBLIVIOUS_NEEDED = Kind("oblivious-needed", 403, "Use the app and its relay.")
OBLIVIOUS_ROUTE = Kind("oblivious-route", 404, "Put or delete a report, or get a study, signed or not.")
OBLIVIOUS_REQUEST = Kind("oblivious-request", 400, "Send one binary HTTP request of known length (RFC 9292).")
ANSWER_TOO_LARGE = Kind("answer-too-large", 406, "Tell the study's contact: relays take no document so long.")

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
    return ProblemError(STUDY_DELETED, f"study {study_id} was deleted by its operator, with its reports")


def broken_off(study_id: str) -> ProblemError:
    """Return the problem of an export during which reports were deleted, for example by retention."""
    return ProblemError(
        REPORTS_DELETED, f"reports of {study_id} were deleted while they were exported: run it again"
    )
