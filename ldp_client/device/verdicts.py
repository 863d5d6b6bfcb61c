"""What a collector's answers mean for a report.

A dropped report is lost permanently, so a refusal counts only from the collector that published exactly the
answered study. A receipt from another collector does not count either: that collector may never read the
report.
"""

from __future__ import annotations

import sqlite3
from datetime import date, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING

from ldp_client.device.requests import Outcome, ask_identity, delete_report, put_report
from ldp_client.words.text import say

if TYPE_CHECKING:
    from ldp_client.device.ledger import Ledger
    from ldp_client.device.outbox import Queued
    from ldp_client.device.transport import Transport

# A report waits for a closed study until this many days after its last day, by this device's clock and by
# the collector's.
GRACE_DAYS = 30


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
            asked = ask_identity(self._transport, self._collector, report)
            self._identity(report, self._collector, asked.identity)
            if not asked.identity:
                return asked
        outcome = put_report(self._transport, self._url(report), report.body, report.ticket, token)
        return judge(self._collector, outcome)

    def delete(self, report: Queued) -> Outcome:
        """Request once that a report, or all shares of a secure sum, are deleted."""
        judge = partial(self._judged, report)
        if report.nodes:
            from ldp_client.device.shares import delete_shares

            return delete_shares(self._transport, report, judge)
        return judge(self._collector, delete_report(self._transport, self._url(report), report.secret))

    def _url(self, report: Queued) -> str:
        return f"{self._collector}/v1/studies/{report.study}/reports/{report.report_id}"

    def _judged(self, report: Queued, url: str, outcome: Outcome) -> Outcome:
        """Decide what an answer from that base URL means for the report."""
        if outcome.state not in ("sent", "refused"):
            return outcome
        identity = self._identity(report, url)
        if not identity and report.body and outcome.state == "sent":
            identity = outcome.identity
        elif not identity and report.document:
            identity = ask_identity(self._transport, url, report).identity
        self._identity(report, url, identity)
        if not report.body and not identity:
            return Outcome("kept", say("device.kept_other_collector"))
        return judged(report, outcome, identity)

    def _identity(self, report: Queued, url: str, to_note: str = "") -> str:
        """Return the identity of the collector at that base URL, "" if unknown; note it if it is given.

        A moved collector keeps its identity.
        """
        home = url if report.nodes else report.collector or url
        if to_note:
            with self._ledger.writing() as connection:
                note_identity(connection, report.document, home, to_note)
        with self._ledger.reading() as connection:
            return identity_at(connection, report.document, home)


def judged(report: Queued, outcome: Outcome, identity: str) -> Outcome:
    """Decide what the outcome means for the report. identity: of the study's collector, "" if unknown."""
    is_refused, why = outcome.state == "refused", ""
    if is_refused and (not report.document or outcome.document != report.document):
        why = say("device.kept_other_study")
    elif (is_refused and not identity) or (identity and outcome.identity != identity):
        why = say("device.kept_other_collector")
    elif outcome.problem == "study-closed":
        why = why_not_over(report.closes, outcome.date)
    return Outcome("kept", "; ".join([part for part in (outcome.reason, why) if part])) if why else outcome


def why_not_over(closes: str, answered: str) -> str:
    """Return why the refusal of a closed study is not final yet, "" if it is. answered: the answer's `Date`.

    A study may be closed by mistake, and reopened. Clocks may be wrong: the later one loses no report.
    """
    if not closes:
        return say("device.kept")
    if min(date.today(), _day_of(answered)) - date.fromisoformat(closes) > timedelta(GRACE_DAYS):
        return ""
    last = min(date.fromisoformat(closes).toordinal() + GRACE_DAYS, date.max.toordinal())
    return say("device.kept_until", day=date.fromordinal(last).isoformat())


def _day_of(answered: str) -> date:
    """Return the day in a Date header, date.max if it has none."""
    try:
        return parsedate_to_datetime(answered).date()
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
