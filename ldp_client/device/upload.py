"""Requests to a collector, and the meaning of its answers.

Only the collector's own receipts and problem documents settle anything. Any answer of a proxy, a captive
portal or another server, whatever its status, leaves a report as it was. A dropped report is lost
permanently, so a refusal counts only from the collector that published exactly the answered study. A receipt
from another collector does not count either: that collector may never read the report.
"""

from __future__ import annotations

import hashlib
import urllib.request
from binascii import hexlify
from datetime import date
from typing import TYPE_CHECKING, Any

from ldp_client.core.tokens import header_of
from ldp_client.device.exchange import MOST_BYTES, MOST_CHARACTERS
from ldp_client.documents.errors import TransferError
from ldp_client.documents.fields import LOWER_HEX, printable
from ldp_client.documents.study import MAX_BYTES
from ldp_client.secure_sum.messages import SHARES
from ldp_client.words.text import say

if TYPE_CHECKING:
    from ldp_client.device.exchange import Answer
    from ldp_client.device.outbox import Queued
    from ldp_client.device.transport import Transport

# Temporary client errors: request timeout, too early, too many requests.
TEMPORARY = (408, 425, 429)
IDENTITY = "LDPKit-Collector"
# Header of a served study: whether reports to it are taken.
STUDY_STATE = "LDPKit-Study"
CLOSED = "closed"
PROBLEM_PREFIX = "urn:ldpkit:problem:"
# The problems that can be final for a report; `judged` decides when they are.
FINAL = ("report-invalid", "report-conflict", "report-withdrawn", "study-closed")
# The problems that can be final for a deletion.
UNDELETABLE = ("sum-fixed",)
STORED = ("stored", "duplicate")
WITHDRAWN = ("withdrawn",)
# A report waits for a closed study until this many days after its last day, by this device's clock.
GRACE_DAYS = 30


class Outcome:
    """The result of one request.

    state: "sent", "refused", "waiting", "kept" (waits too, for another flush) or "stuck" (as "kept", but
    another flush is unlikely to help). reason: in words. problem: the refusal's name. document: digest of the
    study concerned. identity: the collector that answered. date: the answer's date, in HTTP form. Each is ""
    if the answer lacks it. ended: True if the answer says that its study will never take the report.
    """

    def __init__(
        self,
        state: str,
        reason: str = "",
        problem: str = "",
        document: str = "",
        identity: str = "",
        date: str = "",
        ended: bool = False,
    ) -> None:
        self.state = state
        self.reason = reason
        self.problem = problem
        self.document = document
        self.identity = identity
        self.date = date
        self.ended = ended


def put_report(
    transport: Transport, url: str, body: str, invitation: str = "", token: bytes = b""
) -> Outcome:
    """Send a report once. It waits if its invitation or token is not accepted.

    invitation: for a study that takes invited reports only. token: for a study that takes tokens.
    """
    return _put(transport, url, body.encode("utf-8"), "application/json", invitation, token)


def put_share(
    transport: Transport, url: str, share: bytes, invitation: str, token: bytes, digests: bytes
) -> Outcome:
    """Send a sealed share once, as `put_report` sends a report. digests: of all shares, for their token."""
    return _put(transport, url, share, "application/octet-stream", invitation, token, digests)


def _put(
    transport: Transport,
    url: str,
    body: bytes,
    media_type: str,
    invitation: str,
    token: bytes,
    digests: bytes = b"",
) -> Outcome:
    headers = {"Content-Type": media_type}
    if token:
        if digests:
            headers[SHARES] = hexlify(digests).decode()
        # Never both: an invitation identifies the person, a token must not.
        headers["Authorization"] = header_of(token)
    elif invitation:
        headers["LDPKit-Invitation"] = invitation
    return _ask(transport, urllib.request.Request(url, body, headers, method="PUT"), STORED, FINAL)


def delete_report(transport: Transport, url: str, secret: str) -> Outcome:
    """Request a report's deletion once.

    The outcome is "sent" if the collector will never take the report again, "refused" if the report is part
    of a sum. secret: the report's id was made of it, in hexadecimal digits; it appears in no URL.
    """
    headers = {"LDPKit-Withdrawal": secret}
    request = urllib.request.Request(url, headers=headers, method="DELETE")
    return _ask(transport, request, WITHDRAWN, UNDELETABLE)


def _ask(
    transport: Transport,
    request: urllib.request.Request,
    results: tuple[str, ...],
    final: tuple[str, ...],
) -> Outcome:
    """Make a request whose URL ends with the report's id, and return its outcome.

    results: the results that a receipt may state. final: the problems that can be final.
    """
    request.add_header("User-Agent", "ldpkit")
    try:
        answer = transport.exchange(request, MOST_BYTES)
    except TransferError as error:
        return Outcome("waiting", say("device.no_answer", place=request.host, reason=error))
    document = document_of(answer)
    identity = identity_of(answer)
    if _is_receipt(answer, document, request.full_url.rsplit("/", 1)[1], results):
        return Outcome("sent", identity=identity)
    problem = problem_of(answer, document)
    if problem is None:
        return Outcome(pause_of(answer.status), strange(answer))
    reason = say(
        "device.problem",
        status=answer.status,
        problem=problem,
        detail=printable(document.get("detail", ""), MOST_CHARACTERS),
    )
    if problem == "invitation-needed":
        field = printable(str(document.get("field", "")), MOST_CHARACTERS)
        if field.startswith("public."):
            return Outcome("kept", say("device.other_invitation", field=field, reason=reason))
        return Outcome("kept", say("device.uninvited"))
    if problem not in final:
        return Outcome(pause_of(answer.status), reason)
    said = printable(document.get("digest", ""))
    told = (answer.headers.get("Date", ""), document.get("final") is True)
    return Outcome("refused", reason, problem, said, identity, *told)


def identity_of(answer: Answer) -> str:
    """Return the identity of the collector that answers, "" if it states none."""
    identity: str = answer.headers.get(IDENTITY, "")
    return identity if len(identity) == 32 and not identity.strip(LOWER_HEX) else ""


def pause_of(status: int) -> str:
    """Return the outcome's state for an HTTP status: "waiting" to retry soon, else "kept"."""
    return "waiting" if status >= 500 or status in TEMPORARY else "kept"


def media_type_of(answer: Answer) -> str:
    """Return an answer's media type without parameters, or its coding if it is compressed.

    No device requests compression, so a compressed answer is not what the collector sent.
    """
    coding = answer.headers.get("Content-Encoding", "").lower()
    if coding in ("gzip", "br"):
        return f"Content-Encoding {coding}"
    return printable(answer.headers.get("Content-Type", "").partition(";")[0].strip().lower())


def document_of(answer: Answer) -> dict[str, Any]:
    """Return the JSON object in the answer, {} for anything else."""
    import json

    if media_type_of(answer) not in ("application/json", "application/problem+json"):
        return {}
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _is_receipt(answer: Answer, document: dict[str, Any], report_id: str, results: tuple[str, ...]) -> bool:
    named = document.get("id") == report_id and document.get("result") in results
    return answer.status in (200, 201) and media_type_of(answer) == "application/json" and named


def problem_of(answer: Answer, document: dict[str, Any]) -> str | None:
    """Return the name of the collector's own problem, None for any other answer."""
    kind = document.get("type")
    own = isinstance(kind, str) and kind.startswith(PROBLEM_PREFIX) and answer.status >= 400
    if not own or media_type_of(answer) != "application/problem+json":
        return None
    return printable(str(kind)[len(PROBLEM_PREFIX) :])


def strange(answer: Answer) -> str:
    """Return a text about an answer that no collector of ours gives."""
    came = media_type_of(answer) or say("device.unnamed_type")
    return say("device.no_collectors_answer", status=answer.status, came=came)


def judged(report: Queued, outcome: Outcome, identity: str) -> Outcome:
    """Decide what the outcome means for the report. identity: of the study's collector, "" if unknown."""
    if outcome.state == "sent" and identity and outcome.identity != identity:
        return Outcome("kept", say("device.kept_other_collector"))
    if outcome.state != "refused":
        return outcome
    why = _why_kept(report, outcome, identity)
    if not why:
        return outcome
    is_over = why in (say("device.kept_closed_sum"), say("device.kept_over"))
    return Outcome("stuck" if is_over else "kept", f"{outcome.reason}; {why}")


def _why_kept(report: Queued, outcome: Outcome, identity: str) -> str:
    if not report.document or outcome.document != report.document:
        return say("device.kept_other_study")
    if not identity or outcome.identity != identity:
        return say("device.kept_other_collector")
    if outcome.problem == "study-closed":
        why = why_not_over(report.closes, outcome.date)
        # A secure sum or a deleted study never reopens, and a time that passed does not return.
        if why and report.nodes:
            return say("device.kept_closed_sum")
        return say("device.kept_over") if why and outcome.ended else why
    return ""


def why_not_over(closes: str, said: str) -> str:
    """Return why a refusal is not final yet, "" if it is. said: the refusal's date by the collector's clock.

    A study may be closed by mistake, and clocks may be wrong; the collector's clock only makes the wait
    longer.
    """
    if not closes:
        return say("device.kept")
    last = date.fromordinal(min(date.fromisoformat(closes).toordinal() + GRACE_DAYS, date.max.toordinal()))
    if min(date.today(), _day_of(said)) > last:
        return ""
    return say("device.kept_until", day=last.isoformat())


def _day_of(said: str) -> date:
    """Return the day in a Date header, date.max if it has none."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(said).date()
    except (TypeError, ValueError, IndexError, OverflowError):
        return date.max


def ask_identity(transport: Transport, place: str, report: Queued) -> Outcome:
    """Return the identity of the collector there if it serves exactly the answered study, else why not.

    The collector may confirm it with the study's ETag, its digest.
    """
    url = f"{place}/v1/studies/{report.study}?version={report.version}"
    tag = f'"{report.document}"'
    request = urllib.request.Request(url, headers={"User-Agent": "ldpkit", "If-None-Match": tag})
    try:
        answer = transport.exchange(request, MAX_BYTES)
    except TransferError as error:
        return Outcome("waiting", say("device.no_answer", place=request.host, reason=error))
    same = hashlib.sha256(answer.body).hexdigest() == report.document and answer.status == 200
    unchanged = answer.status == 304 and answer.headers.get("ETag") == tag
    identity = identity_of(answer) if same or unchanged else ""
    is_ours = unchanged or document_of(answer)
    reason = say("device.kept_other_collector") if is_ours else strange(answer)
    return Outcome(pause_of(answer.status), reason, identity=identity)
