"""Sending what is due, and asking for what is to be deleted."""

import time
from collections import deque

from ldp_client import outbox
from ldp_client.ledger import Ledger
from ldp_client.locking import BusyError, locked, mark
from ldp_client.secure_sum.outgoing import delete_shares, put_shares
from ldp_client.upload import Outcome, delete_report, put_report, with_retries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from ldp_client.outbox import Queued

MOST_REQUESTS = 15
PERIOD_SECONDS = 60.0


class Flushed:
    """What `flush` did.

    sent, waiting, refused (for good, with reasons): reports. later: reports whose time has not come.
    deleted, undeleted: withdrawn reports whose deletion the collector did or did not acknowledge.
    reason: why something waits.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.waiting = 0
        self.later = 0
        self.refused: "list[str]" = []
        self.deleted = 0
        self.undeleted = 0
        self.reason = ""


class Pace:
    """At most so many reports and deletions a minute: beyond it the rest waits for another flush."""

    def __init__(self, clock: "Callable[[], float]" = time.monotonic) -> None:
        self._clock = clock
        self._times: "deque[float]" = deque(maxlen=MOST_REQUESTS)

    def allows(self) -> bool:
        """Whether one more may be made now; if so it is counted."""
        now = self._clock()
        if len(self._times) == MOST_REQUESTS and now - self._times[0] < PERIOD_SECONDS:
            return False
        self._times.append(now)
        return True


class Sender:
    """Sends what a ledger holds for one collector."""

    def __init__(self, ledger: Ledger, collector: str) -> None:
        self._ledger = ledger
        self._collector = collector
        self._pace = Pace()

    def flush(self, attempts: int, now: bool) -> Flushed:
        """One process of a device at a time, so that no deletion overtakes the report that it is about."""
        result = Flushed()
        try:
            with locked(self._ledger.folder, 0) as lock:
                self._send_all(attempts, now, result)
                self._delete_all(attempts, result)
                # Whoever made the ledger may have been stopped just before it did this.
                mark(lock)
        except BusyError:
            result.waiting = len(self._mine(outbox.pending))
            result.reason = "another process of this device is sending"
        return result

    def _mine(self, select: "Callable[..., list[Queued]]") -> "list[Queued]":
        with self._ledger.reading() as connection:
            return [report for report in select(connection) if self._is_mine(report)]

    def _is_mine(self, report: "Queued") -> bool:
        """Shares name their nodes; other reports may not know their collector yet."""
        known = bool(self._collector) and report.collector in ("", self._collector)
        return known or bool(report.nodes)

    def _send_all(self, attempts: int, now: bool, result: Flushed) -> None:
        for report in self._mine(outbox.pending):
            if now or outbox.is_due(report):
                self._send(report, attempts, result)
            else:
                result.later += 1

    def _send(self, report: "Queued", attempts: int, result: Flushed) -> None:
        with self._ledger.writing() as connection:
            if not outbox.try_now(connection, report.report_id, self._collector):
                return
        outcome = self._ask(lambda: self._put(report), attempts)
        result.reason = outcome.reason or result.reason
        if outcome.state == "waiting":
            result.waiting += 1
            return
        with self._ledger.writing() as connection:
            if outcome.state == "sent":
                outbox.note_sent(connection, report.report_id)
                result.sent += 1
            else:
                outbox.drop(connection, report.report_id)
                result.refused.append(f"report {report.report_id}: {outcome.reason}")

    def _delete_all(self, attempts: int, result: Flushed) -> None:
        for report in self._mine(outbox.withdrawn):
            self._delete(report, attempts, result)

    def _delete(self, report: "Queued", attempts: int, result: Flushed) -> None:
        outcome = self._ask(lambda: self._ask_deletion(report), attempts)
        result.reason = outcome.reason or result.reason
        if outcome.state != "sent":
            result.undeleted += 1
            return
        with self._ledger.writing() as connection:
            outbox.drop(connection, report.report_id)
        result.deleted += 1

    def _ask(self, request: "Callable[[], Outcome]", attempts: int) -> Outcome:
        if not self._pace.allows():
            return Outcome("waiting", f"{MOST_REQUESTS} reports and deletions a minute are the most")
        return with_retries(request, attempts)

    def _put(self, report: "Queued") -> Outcome:
        return (
            put_shares(report)
            if report.nodes
            else put_report(self._url(report), report.body, report.invitation)
        )

    def _ask_deletion(self, report: "Queued") -> Outcome:
        return delete_shares(report) if report.nodes else delete_report(self._url(report))

    def _url(self, report: "Queued") -> str:
        return f"{self._collector}/v1/studies/{report.study}/reports/{report.report_id}"
