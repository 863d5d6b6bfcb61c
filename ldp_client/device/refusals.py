"""When a collector's word about a report is the last one.

Dropping a report loses it for good, so a refusal counts only from the collector that published the very study
that was answered. A receipt of another collector counts no more: it may be the one that nobody reads.
"""

import hashlib
import urllib.request
from datetime import date, timedelta

from ldp_client.device.exchange import exchange
from ldp_client.device.upload import Outcome, identity_of
from ldp_client.documents.errors import TransferError
from ldp_client.documents.study import MAX_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.device.outbox import Queued

# Days after a study's last one, on this device's clock, until which a report waits for a closed study.
GRACE_DAYS = 30
OTHER_COLLECTOR = "another collector answers than the one that published the study: the report is kept"


def judged(report: "Queued", outcome: Outcome, publisher: str) -> Outcome:
    """What the outcome means for the report. publisher: identity of the study's collector, "" for unknown."""
    if outcome.state == "sent" and publisher and outcome.identity not in ("", publisher):
        return Outcome("kept", OTHER_COLLECTOR)
    if outcome.state != "refused":
        return outcome
    why = _why_kept(report, outcome, publisher)
    return Outcome("kept", f"{outcome.reason}; {why}") if why else outcome


def _why_kept(report: "Queued", outcome: Outcome, publisher: str) -> str:
    if not report.document or outcome.document != report.document:
        return "that is not about the study that was answered: the report is kept"
    if not publisher or outcome.identity != publisher:
        return OTHER_COLLECTOR
    if outcome.problem == "study-closed":
        return _why_not_over(report.closes, outcome.date)
    return ""


def _why_not_over(closes: str, said: str) -> str:
    """A study may be closed by mistake, and clocks be wrong; the collector's only makes the wait longer."""
    if not closes:
        return "the report is kept until the study takes it or the person withdraws"
    last = date.fromisoformat(closes) + timedelta(GRACE_DAYS)
    if min(date.today(), _day_of(said)) > last:
        return ""
    return f"the report is kept until {last.isoformat()}, for a study that is opened again"


def _day_of(said: str) -> date:
    """The day in a Date header, the last one of all for none."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(said).date()
    except (TypeError, ValueError, IndexError, OverflowError):
        return date.max


def ask_publisher(place: str, report: "Queued") -> str:
    """The identity of the collector there if it serves exactly the study that was answered, else ""."""
    url = f"{place}/v1/studies/{report.study}?version={report.version}"
    request = urllib.request.Request(url, headers={"User-Agent": "ldpkit"})
    try:
        answer = exchange(request, MAX_BYTES)
    except TransferError:
        return ""
    same = hashlib.sha256(answer.body).hexdigest() == report.document
    return identity_of(answer) if same and answer.status == 200 else ""
