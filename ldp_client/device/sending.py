"""Send due reports and request due deletions, with a limit on requests a minute.

The tables of the limit decide no answer. So the ledger's seal omits them, and the first flush makes them.
"""

from __future__ import annotations

import sqlite3
from itertools import zip_longest
from time import monotonic, sleep
from typing import TYPE_CHECKING

from ldp_client.device import outbox
from ldp_client.device.arguments import LONGEST_WINDOW
from ldp_client.device.http import CHANCE, backoff
from ldp_client.device.ledger import BusyError, Ledger, locked, mark
from ldp_client.device.outbox import Channels, Queued
from ldp_client.device.policy import Policy
from ldp_client.device.requests import Outcome
from ldp_client.device.tickets import ask_token
from ldp_client.device.transport import KeyGoneError
from ldp_client.device.verdicts import Delivery, Flushed
from ldp_client.documents.errors import LdpkitError, LedgerError
from ldp_client.words.text import say

if TYPE_CHECKING:
    from ldp_client.device.transport import Transport

STILL_WAITS = ("waiting", "kept", "paced", "stuck")
# No request starts later than this after its flush: a stalled server delays a flush no longer.
LONGEST_FLUSH_SECONDS = 300.0
MOST_REQUESTS = 15
# At most this many are deletions. The rest is for uploads, as a deletion is repeated until acknowledged.
MOST_DELETIONS = 10
PERIOD_SECONDS = 60.0
# The moments of all requests, and of the deletions among them.
_TABLES = ("attempts", "deletions")


class Sender:
    """Flushes a ledger once, to one collector and to the nodes of secure sums."""

    def __init__(
        self, ledger: Ledger, collector: str, policy: Policy, transport: Transport, now: bool
    ) -> None:
        self._ledger = ledger
        self._collector = collector
        self._policy = policy
        self._transport = transport
        self._now = now
        self._delivery = Delivery(ledger, collector, transport)
        self._until = monotonic() + LONGEST_FLUSH_SECONDS
        self._result = Flushed()
        self._channels: Channels

    def flush(self, attempts: int) -> Flushed:
        """Flush in one process of a device at a time, so that no deletion overtakes its report."""
        result = self._result
        try:
            with locked(self._ledger.folder, 0) as lock:
                with self._ledger.writing() as connection:
                    forget_moments(connection, outbox.now())
                withdrawn, queued = self._read()
                deletions, uploads = self._apart(self._ready(withdrawn), self._ready(queued))
                self._in_turn(deletions, uploads, attempts)
                # Reports that were withdrawn while they were being sent.
                asked = {report.report_id for report in withdrawn}
                late = [report for report in self._read()[0] if report.report_id not in asked]
                self._in_turn(self._ready(late), [], attempts)
                # The process that made the ledger may have been stopped just before it marked the lock.
                mark(lock)
        except BusyError:
            with self._ledger.reading() as connection:
                result.waiting = len(outbox.pending(connection))
                result.undeleted = len(outbox.withdrawn(connection))
            result.reason = say("device.another_sends")
        result.reason = result.reason or result.stuck_reason
        return result

    def _read(self) -> tuple[list[Queued], list[Queued]]:
        """Return the reports to delete and those to send, and read their channels in the same state."""
        with self._ledger.reading() as connection:
            self._channels = Channels(connection)
            return outbox.withdrawn(connection), outbox.pending(connection)

    def _ready(self, reports: list[Queued]) -> list[Queued]:
        """Return the reports whose request may be made now; count the others."""
        ready = []
        for report in reports:
            if self._waits(report):
                continue
            obstacle = self._obstacle(report)
            if obstacle:
                self._result.waiting += bool(report.body)
                self._result.undeleted += not report.body
                self._result.reason = self._result.reason or obstacle
            else:
                ready.append(report)
        return ready

    def _waits(self, report: Queued) -> bool:
        """Return True if the time of a report or its deletion is still to come, and count it then.

        With `now`, only reports that leave together with others wait.
        """
        wait = self._channels.longest_wait(report)
        if self._now and not (wait and report.body):
            return False
        if wait and report.due - outbox.now() > wait:
            # The clock was moved back.
            self._put_off(report)
            return True
        if outbox.is_due(report, wait or LONGEST_WINDOW):
            return False
        self._result.scheduled += 1
        self._result.batched += wait > 0
        return True

    def _obstacle(self, report: Queued) -> str:
        """Return why this device may not make the report's requests, "" if it may.

        Shares name their nodes; other reports may not know their collector yet.
        """
        channel = self._channels.of(report)
        tickets = channel.tickets if channel is not None else None
        if self._transport.relay and (tickets or report.nodes):
            return say("device.beyond_the_relay", study=report.study)
        try:
            if tickets is not None:
                self._policy.base_url(tickets.issuer)
            for url in report.nodes:
                self._policy.node_url(url)
            self._policy.base_url(self._collector)
        except LdpkitError as error:
            return str(error)
        if report.origin == self._ledger.origin or report.nodes:
            return ""
        return say("device.of_another_collector", collector=report.collector)

    def _apart(self, deletions: list[Queued], uploads: list[Queued]) -> tuple[list[Queued], list[Queued]]:
        """Return both lists without the requests that must leave in another window.

        A token request carries the person's ticket, so a batched report never leaves next to it. A first
        token request goes first. Among retries chance decides, so none blocks the others permanently. Through
        a relay one batched request leaves at a time, because two at once belong to one person.
        """
        asking = [report for report in uploads if self._channels.asks_token(report)]
        hurried = deletions if self._now else []
        batched = [
            report
            for report in (*deletions, *uploads)
            if self._channels.of(report) is not None and report not in asking and report not in hurried
        ]
        later: list[Queued] = []
        if self._transport.relay:
            later = CHANCE.sample(batched, len(batched))[1:]
        elif asking and batched:
            is_first = not all([self._channels.has_asked(report) for report in asking])
            later = batched if is_first or CHANCE.getrandbits(1) else asking
        for report in later:
            self._put_off(report)
        deletions = [report for report in deletions if report not in later]
        return deletions, [report for report in uploads if report not in later]

    def _put_off(self, report: Queued) -> None:
        """Move a request that was not made to a random moment of the next window, and count it."""
        self._postpone(report)
        self._result.count_batched()

    def _in_turn(self, deletions: list[Queued], uploads: list[Queued], attempts: int) -> None:
        """Make each request once before any request a second time, up to `attempts` times.

        Deletions and uploads alternate, a deletion first, each kind in random order. So a request that fails
        at every flush blocks no other permanently.
        """
        kinds = [CHANCE.sample(kind, len(kind)) for kind in (deletions, uploads)]
        turns = [report for pair in zip_longest(*kinds) for report in pair if report]
        for attempt in range(attempts):
            if turns and attempt:
                sleep(backoff(attempt))
            again = []
            for report in turns:
                awaits = bool(report.body) and self._channels.awaits_token(report)
                outcome = self._ask(report, awaits)
                if outcome.state == "waiting" and attempt < attempts - 1:
                    again.append(report)
                else:
                    self._settle(report, outcome, awaits)
            turns = again

    def _ask(self, report: Queued, awaits: bool) -> Outcome:
        """Make a report's request once. Before an upload leaves, the ledger notes durably that it may leave.

        awaits: the request is for a token. The outcome may also be "paced" (too many requests lately) or
        "withdrawn" (meanwhile).
        """
        if monotonic() > self._until:
            return Outcome("kept", say("device.flush_too_long"))
        with self._ledger.writing() as connection:
            if not allows(connection, outbox.now(), not report.body):
                return Outcome("paced", say("device.paced", most=MOST_REQUESTS))
            leaves = report.body and not awaits
            if leaves and not outbox.try_now(connection, report.report_id, self._collector):
                return Outcome("withdrawn")
        try:
            return self._request(report, awaits)
        except LedgerError:
            raise
        except KeyGoneError as error:
            return Outcome("stuck", str(error))
        except LdpkitError as error:
            return Outcome("kept", str(error))
        except Exception as error:
            # A report that cannot be sent must not block the others. Omit the error's text.
            return Outcome("kept", say("device.request_failed", reason=type(error).__name__))

    def _request(self, report: Queued, awaits: bool) -> Outcome:
        channel = self._channels.of(report)
        if not report.body:
            return self._delivery.delete(report)
        if awaits and channel is not None:
            return ask_token(self._transport, self._ledger, report, channel)
        return self._delivery.upload(report, self._channels.token(report), channel is not None)

    def _settle(self, report: Queued, outcome: Outcome, awaits: bool) -> None:
        """Count the last outcome of a report's request, and note in the ledger what it means."""
        result, state = self._result, outcome.state
        if state == "stuck":
            result.stuck, result.stuck_reason = result.stuck + 1, outcome.reason
        elif outcome.reason and state != "refused":
            result.reason = outcome.reason
        if not report.body:
            self._settle_deletion(report, outcome)
        elif awaits and state == "sent":
            result.count_batched()
        elif state in STILL_WAITS:
            result.waiting += 1
            if not awaits and state != "paced":
                self._postpone(report)
        elif state in ("sent", "refused"):
            self._settle_upload(report, outcome)

    def _settle_deletion(self, report: Queued, outcome: Outcome) -> None:
        result = self._result
        if outcome.state not in ("sent", "refused"):
            result.undeleted += 1
            if outcome.state != "paced":
                self._postpone(report)
            return
        with self._ledger.writing() as connection:
            if outcome.state == "sent":
                outbox.drop(connection, report.report_id)
                result.deleted += 1
                return
            outbox.note_undeletable(connection, report.report_id)
        result.refused.append(say("device.undeletable", report=report.report_id, reason=outcome.reason))

    def _settle_upload(self, report: Queued, outcome: Outcome) -> None:
        with self._ledger.writing() as connection:
            outbox.conclude(connection, report.report_id, outcome.state)
        if outcome.state == "sent":
            self._result.sent += 1
        else:
            line = say("device.refused_report", report=report.report_id, reason=outcome.reason)
            self._result.refused.append(line)

    def _postpone(self, report: Queued) -> None:
        """Move a batched request to a random moment of the next window."""
        channel = self._channels.of(report)
        if channel is not None:
            with self._ledger.writing() as connection:
                outbox.postpone(connection, report.report_id, channel.hours)


def allows(connection: sqlite3.Connection, now: float, is_deletion: bool = False) -> bool:
    """Return True and count a request at `now` (seconds since 1970) if it may be made."""
    forget_moments(connection, now)
    limits = {"attempts": MOST_REQUESTS, **({"deletions": MOST_DELETIONS} if is_deletion else {})}
    for table, most in limits.items():
        if connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] >= most:
            return False
    for table in limits:
        connection.execute(f"INSERT INTO {table} VALUES (?)", (now,))
    return True


def forget_moments(connection: sqlite3.Connection, now: float) -> None:
    """Delete each request's moment after a minute: kept longer, it would tell when the person answered.

    A moment that is a minute in the future was noted before the clock was moved.
    """
    for table in _TABLES:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (moment REAL NOT NULL)")
        connection.execute(f"DELETE FROM {table} WHERE ABS(? - moment) >= ?", (now, PERIOD_SECONDS))
