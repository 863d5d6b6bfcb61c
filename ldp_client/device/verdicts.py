"""What a collector's answers mean for a report, and for a flush.

A dropped report is lost permanently, so a refusal counts only from the collector that published exactly the
answered study. A receipt from another collector does not count either: that collector may never read the
report.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from datetime import date
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING

from ldp_client.device.requests import Outcome, ask_identity, delete_report, put_report
from ldp_client.words.text import say

if TYPE_CHECKING:
    from ldp_client.device.ledger import Ledger
    from ldp_client.device.outbox import Queued
    from ldp_client.device.transport import Transport

# A report waits for a closed study until this many days after its last day, by this device's clock.
GRACE_DAYS = 30


@dataclass(repr=False)
class Flushed:
    """The result of a flush.

    Attributes:
        sent: number of reports that were sent.
        waiting: number of reports that wait, for any collector.
        reason: why reports wait.
        stuck: number of waiting reports that another flush is unlikely to advance.
        stuck_reason: why they are stuck. If other reports wait too, `reason` is about those.
        refused: a line for each report or deletion that was permanently refused, with the reason.
        scheduled: number of reports whose time has not come.
        batched: how many of these leave together with others, at a time that no flush can hasten.
        deleted: number of withdrawn reports whose deletion the collector acknowledged.
        undeleted: number of withdrawn reports whose deletion still waits, at any collector.
    """

    sent: int = 0
    waiting: int = 0
    reason: str = ""
    stuck: int = 0
    stuck_reason: str = ""
    refused: list[str] = field(default_factory=list)
    scheduled: int = 0
    batched: int = 0
    deleted: int = 0
    undeleted: int = 0

    @property
    def likely(self) -> int:
        """Return how many waiting reports and deletions another flush may advance."""
        return self.waiting + self.undeleted - self.stuck

    def count_batched(self) -> None:
        """Count one more report that leaves later, in a batch."""
        self.scheduled += 1
        self.batched += 1

    def __repr__(self) -> str:
        parts = [say("device.sent", count=self.sent, deleted=self.deleted)]
        for count, reason in ((self.likely, self.reason), (self.stuck, self.stuck_reason)):
            if count:
                parts.append(say("device.waiting", count=count, reason=reason))
        if self.scheduled:
            parts.append(say("device.scheduled", count=self.scheduled))
        if self.batched:
            parts.append(say("device.batched", count=self.batched))
        parts += [say("device.refused", report=line) for line in self.refused]
        return "; ".join(parts)


class Delivery:
    """Makes the requests of a ledger's reports, and decides what their answers mean."""

    def __init__(self, ledger: Ledger, collector: str, transport: Transport) -> None:
        self._ledger = ledger
        self._collector = collector
        self._transport = transport

    def upload(self, report: Queued, token: bytes, is_batched: bool) -> Outcome:
        """Send a report, or all shares of a secure sum, once.

        is_batched: the report leaves together with others, so its device never asked in the clear which
        collector takes it: the identity that it states there may be unique to this address.
        """
        judge = partial(self._judged, report)
        if report.nodes:
            from ldp_client.device.shares import put_shares

            return put_shares(self._transport, report, judge, token)
        if is_batched and not self._identity(report, self._collector):
            found = ask_identity(self._transport, self._collector, report)
            self._note(report, self._collector, found.identity)
            if not found.identity:
                return found
        outcome = put_report(self._transport, self._url(report), report.body, report.ticket, token)
        return judge(self._collector, outcome)

    def delete(self, report: Queued) -> Outcome:
        """Request once that a report, or all shares of a secure sum, are deleted."""
        judge = partial(self._judged, report)
        if report.nodes:
            from ldp_client.device.shares import delete_shares

            return delete_shares(self._transport, report, judge)
        return judge(self._collector, delete_report(self._transport, self._url(report), report.secret))

    def _judged(self, report: Queued, place: str, outcome: Outcome) -> Outcome:
        """Decide what an answer from that base URL means for the report."""
        if outcome.state not in ("sent", "refused"):
            return outcome
        identity = self._identity(report, place)
        is_deletion = not report.body
        if (is_deletion or outcome.state == "refused") and not identity and report.document:
            identity = ask_identity(self._transport, place, report).identity
            if is_deletion and not identity:
                return Outcome("kept", say("device.kept_other_collector"))
        elif not identity:
            identity = outcome.identity
        self._note(report, place, identity)
        return judged(report, outcome, identity)

    def _identity(self, report: Queued, place: str) -> str:
        with self._ledger.reading() as connection:
            return identity_at(connection, report.document, _home(report, place))

    def _note(self, report: Queued, place: str, identity: str) -> None:
        with self._ledger.writing() as connection:
            note_identity(connection, report.document, _home(report, place), identity)

    def _url(self, report: Queued) -> str:
        return f"{self._collector}/v1/studies/{report.study}/reports/{report.report_id}"


def _home(report: Queued, place: str) -> str:
    """Return the base URL whose collector must answer. A moved collector keeps its identity."""
    return place if report.nodes else report.collector or place


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
    try:
        return parsedate_to_datetime(said).date()
    except (TypeError, ValueError, IndexError, OverflowError):
        return date.max


def identity_at(connection: sqlite3.Connection, digest: str, collector: str) -> str:
    """Return the identity of the collector that serves this document at this base URL, "" if unknown."""
    query = "SELECT identity FROM identities WHERE document = ? AND collector = ?"
    row = connection.execute(query, (digest, collector)).fetchone()
    return row[0] if row else ""


def note_identity(connection: sqlite3.Connection, digest: str, collector: str, identity: str) -> None:
    """Remember which collector serves a study at this base URL.

    Once a report may have left, the identity is fixed: only that collector can delete the report.
    """
    query = "SELECT 1 FROM reports WHERE document = ? AND state <> 'queued'"
    known = identity_at(connection, digest, collector)
    if not digest or not identity or (known and connection.execute(query, (digest,)).fetchone()):
        return
    connection.execute("INSERT OR REPLACE INTO identities VALUES (?, ?, ?)", (digest, collector, identity))
