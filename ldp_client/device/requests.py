"""Requests to a collector, and its answers: studies, receipts and refusals.

Only the collector's own receipts and problem documents settle anything. Any answer of a proxy, a captive
portal or another server, whatever its status, leaves a report as it was.
"""

import urllib.request
from datetime import date
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from ldp_client.core.tokens import header_of
from ldp_client.device import outbox
from ldp_client.device.http import MOST_BYTES, MOST_CHARACTERS, Answer
from ldp_client.device.outbox import Queued
from ldp_client.device.transport import API, TEMPORARY, Transport
from ldp_client.documents.errors import InputError, RefusedError, StudyError, TransferError
from ldp_client.documents.fields import printable
from ldp_client.documents.signed import MAX_BYTES as MAX_SIGNED_BYTES
from ldp_client.documents.signed import SignedStudy
from ldp_client.documents.study import MAX_BYTES, Study
from ldp_client.secure_sum import SHARES

# Header of a served study: whether reports to it are taken.
STUDY_STATE = "LDPKit-Study"
CLOSED = "closed"
# The problems that can be final for a report; `judged` decides when they are.
FINAL = ("report-invalid", "report-conflict", "report-withdrawn", "study-closed")
# The problems that can be final for a deletion.
UNDELETABLE = ("sum-fixed",)
# The problems of a report whose direct ticket the collector does not take.
UNTICKETED = ("ticket-needed", "ticket-invalid", "ticket-spent")
STORED = ("stored", "duplicate")
WITHDRAWN = ("withdrawn",)
# A report waits for a closed study until this many days after its last day, by this device's clock and by
# the collector's.
GRACE_DAYS = 30


class Outcome(NamedTuple):
    """The result of one request.

    state: "sent", "refused", "waiting" (to retry soon) or "kept" (for another flush). reason: in words.
    problem: the refusal's name. document: digest of the study concerned. date: of a refusal, in HTTP form.
    Each is "" if the answer lacks it.
    """

    state: str
    reason: str = ""
    problem: str = ""
    document: str = ""
    date: str = ""


def fetch_document(
    transport: Transport, collector: str, study_id: str, is_signed: bool = False
) -> Study | SignedStudy:
    """Return the study of that id.

    is_signed: return the study with its signatures, which are unverified. Raises TransferError, StudyError,
    InputError for an unknown study, and RefusedError for a closed study or a study of a newer ldpkit.
    """
    url = f"{collector}{API}{study_id}" + ("/signed" if is_signed else "")
    # 1. Fetch it.
    most = MAX_SIGNED_BYTES if is_signed else MAX_BYTES
    try:
        answer = transport.exchange(urllib.request.Request(url, headers={"User-Agent": "ldpkit"}), most)
    except (TransferError, ValueError) as error:
        raise TransferError(
            f"cannot reach {url}: {printable(error, MOST_CHARACTERS)}", code="device.unreachable"
        ) from None
    if answer.problem == "study-deleted":
        raise RefusedError(
            f"{url}: the study was deleted, and accepts no further reports", code="device.deleted"
        )
    if answer.status in (401, 404):
        signed = ", and was it published with a signature" if is_signed else ""
        raise InputError(
            f"{url} answered with HTTP status {answer.status}: is the study's id right{signed}?",
            code="device.http_absent",
        )
    if answer.status != 200:
        raise TransferError(f"{url} answered with HTTP status {answer.status}", code="device.http_status")
    # 2. Read it.
    try:
        document = SignedStudy.from_json(answer.body) if is_signed else Study.from_json(answer.body)
    except StudyError as error:
        # Only a newer ldpkit can know this mechanism.
        if error.field.endswith("mechanism.name") and "is unknown" in error.problem:
            raise RefusedError(
                f"this study cannot be answered: {error.field}: {error.problem}; a newer version of ldpkit "
                "may know it",
                code="device.cannot_be_answered",
            ) from None
        raise
    study_in = document.study if isinstance(document, SignedStudy) else document
    if study_in.id != study_id:
        raise TransferError(f"{url} answered with another study, {study_in.id}", code="device.another_study")
    if answer.headers.get(STUDY_STATE) == CLOSED:
        raise RefusedError(
            f"study {study_id} is closed: it accepts no further reports. Nothing was answered",
            code="device.closed_early",
        )
    return document


def put_report(transport: Transport, url: str, body: str, ticket: str = "", token: bytes = b"") -> Outcome:
    """Send a report once. It waits if its ticket or token is not accepted.

    ticket: for a study that takes invited reports only. token: for a study that takes tokens.
    """
    headers = {"Content-Type": "application/json"}
    if token:
        # Never both: a ticket identifies the person, a token must not.
        headers["Authorization"] = header_of(token)
    elif ticket:
        headers["LDPKit-Ticket"] = ticket
    request = urllib.request.Request(url, body.encode("utf-8"), headers, method="PUT")
    return _ask(transport, request, STORED, FINAL)


def put_share(transport: Transport, url: str, share: bytes, token: bytes, digests: bytes) -> Outcome:
    """Send a sealed share once with its token. digests: of all shares, to which the token is bound."""
    headers = {"Content-Type": "application/octet-stream", SHARES: digests.hex()}
    headers["Authorization"] = header_of(token)
    return _ask(transport, urllib.request.Request(url, share, headers, method="PUT"), STORED, FINAL)


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
        return Outcome("waiting", f"cannot reach {request.host}: {error}")
    document = answer.document
    is_ours = answer.status in (200, 201) and answer.media_type == "application/json"
    is_named = document.get("id") == request.full_url.rsplit("/", 1)[1]
    if is_ours and is_named and document.get("result") in results:
        return Outcome("sent")
    problem, outcome = answer.problem, unsettled(answer)
    if problem in UNTICKETED and "Authorization" not in request.headers:
        field = printable(str(document.get("field", "")), MOST_CHARACTERS)
        if field.startswith("public."):
            advice = "a report is never changed: give a ticket that carries the report's value, or withdraw"
            return Outcome("kept", f"{field}: {outcome.reason}; {advice}")
        return Outcome("kept", "the study accepts invited reports only: give an unused ticket")
    if problem is None or problem not in final:
        return outcome
    digest, when = printable(document.get("digest", "")), answer.headers.get("Date", "")
    return Outcome("refused", outcome.reason, problem, digest, when)


def unsettled(answer: Answer) -> Outcome:
    """Return the outcome of an answer that settles nothing: "waiting" to retry soon, else "kept"."""
    state = "waiting" if answer.status >= 500 or answer.status in TEMPORARY else "kept"
    if answer.problem is None:
        came = answer.media_type or "no content type"
        return Outcome(state, f"HTTP status {answer.status} with {came}: not a collector's answer")
    detail = printable(answer.document.get("detail", ""), MOST_CHARACTERS)
    return Outcome(state, f"HTTP status {answer.status}, {answer.problem}: {detail}")


def judged(report: Queued, outcome: Outcome) -> Outcome:
    """Decide what an outcome means for the report: a dropped report is lost permanently.

    So a refusal counts only if it is about exactly the answered study, and the study is over for certain.
    """
    if outcome.state != "refused":
        return outcome
    why = ""
    if outcome.document != report.document:
        why = "this refusal is not about the study that was answered: the report is kept"
    elif outcome.problem == "study-closed":
        why = why_not_over(report.closes, outcome.date)
    return Outcome("kept", "; ".join([part for part in (outcome.reason, why) if part])) if why else outcome


def why_not_over(closes: str, answered: str) -> str:
    """Return why the refusal of a closed study is not final yet, "" if it is. answered: the answer's `Date`.

    A study may be closed by mistake, and reopened. Clocks may be wrong: the later one loses no report.
    """
    if not closes:
        return "the report is kept until the study takes it or the person withdraws"
    try:
        day = parsedate_to_datetime(answered).date()
    except (TypeError, ValueError, IndexError, OverflowError):
        day = date.max
    last = min(date.fromisoformat(closes).toordinal() + GRACE_DAYS, date.max.toordinal())
    if min(outbox.today(), day).toordinal() > last:
        return ""
    return f"the report is kept until {date.fromordinal(last).isoformat()}, in case the study is opened again"
