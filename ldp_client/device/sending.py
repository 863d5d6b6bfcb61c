"""Send due reports and request due deletions, with a limit on requests a minute."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from itertools import zip_longest
from typing import TYPE_CHECKING

from ldp_client.device import clock, outbox
from ldp_client.device.channels import Channels, postpone
from ldp_client.device.clock import CHANCE, MOST_REQUESTS, allows, forget_moments
from ldp_client.device.exchange import backoff
from ldp_client.device.flushed import Flushed
from ldp_client.device.ledger import Ledger
from ldp_client.device.locking import BusyError, locked, mark
from ldp_client.device.outbox import Queued
from ldp_client.device.policy import Policy
from ldp_client.device.shares import delete_shares, put_shares
from ldp_client.device.token_asking import ask_token
from ldp_client.device.transport import KeyGoneError
from ldp_client.device.trust import identity_at, note_identity
from ldp_client.device.upload import (
    Outcome,
    ask_identity,
    delete_report,
    judged,
    put_report,
)
from ldp_client.documents.errors import LdpkitError, LedgerError
from ldp_client.words.text import say

if TYPE_CHECKING:
    from ldp_client.device.transport import Transport

STILL_WAITS = ("waiting", "kept", "paced", "stuck")
# No request starts later than this after its flush: a stalled server delays a flush no longer.
LONGEST_FLUSH_SECONDS = 300.0


class Sender:
    """Sends a ledger's reports for one collector and for the nodes of secure sums."""

    def __init__(self, ledger: Ledger, collector: str, policy: Policy, transport: Transport) -> None:
        self._ledger = ledger
        self._collector = collector
        self._policy = policy
        self._transport = transport
        self._until = 0.0
        self._channels: Channels

    def flush(self, attempts: int, now: bool) -> Flushed:
        """Flush in one process of a device at a time, so that no deletion overtakes its report."""
        result = Flushed()
        self._until = time.monotonic() + LONGEST_FLUSH_SECONDS
        try:
            with locked(self._ledger.folder, 0) as lock:
                with self._ledger.writing() as connection:
                    forget_moments(connection, clock.now())
                withdrawn, queued = self._read()
                deletions, uploads = self._ready(withdrawn, now, result), self._ready(queued, now, result)
                self._in_turn(*self._apart(deletions, uploads, now, result), attempts, result)
                # Reports that were withdrawn while they were being sent.
                asked = {report.report_id for report in withdrawn}
                late = [report for report in self._read()[0] if report.report_id not in asked]
                self._in_turn(self._ready(late, now, result), [], attempts, result)
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

    def _obstacle(self, report: Queued) -> str:
        """Return why this device may not make the report's requests, "" if it may.

        Shares name their nodes; other reports may not know their collector yet.
        """
        channel = self._channels.of(report)
        tokens = channel.tokens if channel is not None else None
        if self._transport.relay and (tokens or report.nodes):
            return say("device.beyond_the_relay", study=report.study)
        try:
            if tokens is not None:
                self._policy.base_url(tokens.issuer)
            for url in report.nodes:
                self._policy.node_url(url)
            self._policy.base_url(self._collector)
        except LdpkitError as error:
            return str(error)
        if report.origin == self._ledger.origin or report.nodes:
            return ""
        return say("device.of_another_collector", collector=report.collector)

    def _ready(self, reports: list[Queued], now: bool, result: Flushed) -> list[Queued]:
        """Return the reports whose request may be made now; count the others."""
        ready = []
        for report in reports:
            if self._waits(report, now, result):
                continue
            obstacle = self._obstacle(report)
            if obstacle:
                result.waiting += bool(report.body)
                result.undeleted += not report.body
                result.reason = result.reason or obstacle
            else:
                ready.append(report)
        return ready

    def _waits(self, report: Queued, now: bool, result: Flushed) -> bool:
        """Return True if the time of a report or its deletion is still to come, and count it then.

        now: only reports that leave together with others wait.
        """
        wait = self._channels.longest_wait(report)
        if now and not (wait and report.body):
            return False
        if wait and report.due - clock.now() > wait:
            # The clock was moved back.
            self._put_off(report, result)
            return True
        if outbox.is_due(report, wait or outbox.LONGEST_WINDOW):
            return False
        result.scheduled += 1
        result.batched += wait > 0
        return True

    def _apart(
        self, deletions: list[Queued], uploads: list[Queued], now: bool, result: Flushed
    ) -> tuple[list[Queued], list[Queued]]:
        """Return both lists without the requests that must leave in another window.

        A token request carries the person's invitation, so a batched report never leaves next to it. A first
        token request goes first. Among retries chance decides, so none blocks the others permanently. Through
        a relay one batched request leaves at a time, because two at once belong to one person.
        """
        asking = [report for report in uploads if self._channels.asks_token(report)]
        hurried = deletions if now else []
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
            self._put_off(report, result)
        deletions = [report for report in deletions if report not in later]
        return deletions, [report for report in uploads if report not in later]

    def _put_off(self, report: Queued, result: Flushed) -> None:
        """Move a request that was not made to a random moment of the next window, and count it."""
        self._postpone(report, Outcome("kept"))
        result.count_batched()

    def _in_turn(
        self, deletions: list[Queued], uploads: list[Queued], attempts: int, result: Flushed
    ) -> None:
        """Make each request once before any request a second time, up to `attempts` times.

        Deletions and uploads alternate, each kind in random order. So a request that fails at every flush
        blocks no other permanently.
        """
        turns = _shuffled_together(deletions, uploads)
        for attempt in range(attempts):
            if turns and attempt:
                time.sleep(backoff(attempt))
            is_last = attempt == attempts - 1
            turns = [report for report in turns if not self._is_settled(report, is_last, result)]

    def _is_settled(self, report: Queued, is_last: bool, result: Flushed) -> bool:
        """Make a report's request. Return True, and count it, if this flush does not try it again."""
        is_deletion, awaits = not report.body, self._channels.awaits_token(report)
        request = self._ask_token if awaits else self._put
        outcome = self._ask(report, self._ask_deletion if is_deletion else request)
        if outcome.state == "waiting" and not is_last:
            return False
        if outcome.state == "stuck":
            result.stuck, result.stuck_reason = result.stuck + 1, outcome.reason
        elif outcome.reason and outcome.state != "refused":
            result.reason = outcome.reason
        if is_deletion:
            self._count_deletion(report, outcome, result)
        elif awaits:
            self._count_token(outcome, result)
        else:
            self._count_upload(report, outcome, result)
        return True

    @staticmethod
    def _count_token(outcome: Outcome, result: Flushed) -> None:
        if outcome.state == "sent":
            result.count_batched()
        elif outcome.state in STILL_WAITS:
            result.waiting += 1

    def _count_deletion(self, report: Queued, outcome: Outcome, result: Flushed) -> None:
        if outcome.state == "sent":
            self._note(outbox.drop, report)
            result.deleted += 1
        elif outcome.state == "refused":
            self._note(outbox.note_undeletable, report)
            result.refused.append(say("device.undeletable", report=report.report_id, reason=outcome.reason))
        else:
            result.undeleted += 1
            self._postpone(report, outcome)

    def _count_upload(self, report: Queued, outcome: Outcome, result: Flushed) -> None:
        if outcome.state in STILL_WAITS:
            result.waiting += 1
            self._postpone(report, outcome)
        if outcome.state == "sent":
            self._note(outbox.note_sent, report)
            result.sent += 1
        if outcome.state == "refused":
            self._note(outbox.note_refused, report)
            result.refused.append(
                say("device.refused_report", report=report.report_id, reason=outcome.reason)
            )

    def _postpone(self, report: Queued, outcome: Outcome) -> None:
        """Move a failed request to a random moment of the next window."""
        channel = self._channels.of(report)
        if outcome.state == "paced":
            return
        if channel is not None:
            with self._ledger.writing() as connection:
                postpone(connection, report.report_id, channel.hours)

    def _note(self, what: Callable[[sqlite3.Connection, str], None], report: Queued) -> None:
        with self._ledger.writing() as connection:
            what(connection, report.report_id)

    def _ask(self, report: Queued, request: Callable[[Queued], Outcome]) -> Outcome:
        """Make a report's request once. Before an upload leaves, the ledger notes durably that it may leave.

        The outcome may also be "paced" (too many requests lately) or "withdrawn" (meanwhile).
        """
        if time.monotonic() > self._until:
            return Outcome("kept", say("device.flush_too_long"))
        with self._ledger.writing() as connection:
            obstacle = self._leave(connection, report)
        if obstacle is not None:
            return obstacle
        try:
            return request(report)
        except LedgerError:
            raise
        except KeyGoneError as error:
            return Outcome("stuck", str(error))
        except LdpkitError as error:
            return Outcome("kept", str(error))
        except Exception as error:
            # A report that cannot be sent must not block the others. Omit the error's text.
            return Outcome("kept", say("device.request_failed", reason=type(error).__name__))

    def _leave(self, connection: sqlite3.Connection, report: Queued) -> Outcome | None:
        """Note that a report's request leaves now, or return why it may not."""
        is_deletion = not report.body
        if not allows(connection, clock.now(), is_deletion):
            return Outcome("paced", say("device.paced", most=MOST_REQUESTS))
        leaves = not is_deletion and not self._channels.awaits_token(report)
        if leaves and not outbox.try_now(connection, report.report_id, self._collector):
            return Outcome("withdrawn")
        return None

    def _judged(self, report: Queued, place: str, outcome: Outcome) -> Outcome:
        """Decide what an answer from that base URL means for the report."""
        if outcome.state not in ("sent", "refused"):
            return outcome
        with self._ledger.reading() as connection:
            identity = identity_at(connection, report.document, self._home(report, place))
        deletion = not report.body
        if (deletion or outcome.state == "refused") and not identity and report.document:
            identity = ask_identity(self._transport, place, report).identity
            if deletion and not identity:
                return Outcome("kept", say("device.kept_other_collector"))
        elif not identity:
            identity = outcome.identity
        with self._ledger.writing() as connection:
            note_identity(connection, report.document, self._home(report, place), identity)
        return judged(report, outcome, identity)

    def _home(self, report: Queued, place: str) -> str:
        """Return the base URL whose collector must answer. A moved collector keeps its identity."""
        return place if report.nodes else report.collector or place

    def _put(self, report: Queued) -> Outcome:
        def judge(place: str, outcome: Outcome) -> Outcome:
            return self._judged(report, place, outcome)

        token = self._channels.token(report)
        if report.nodes:
            return put_shares(self._transport, report, judge, token)
        obstacle = self._find_identity(report) if self._channels.of(report) is not None else None
        if obstacle is not None:
            return obstacle
        url = self._url(report)
        return judge(self._collector, put_report(self._transport, url, report.body, report.invitation, token))

    def _find_identity(self, report: Queued) -> Outcome | None:
        """Ask, as the report would leave, which collector takes it if that is unknown. Return any failure.

        The identity that the collector stated in the clear may be unique to this address.
        """
        home = self._home(report, self._collector)
        with self._ledger.reading() as connection:
            if identity_at(connection, report.document, home):
                return None
        found = ask_identity(self._transport, self._collector, report)
        with self._ledger.writing() as connection:
            note_identity(connection, report.document, home, found.identity)
        return None if found.identity else found

    def _ask_token(self, report: Queued) -> Outcome:
        channel = self._channels.of(report)
        assert channel is not None
        return ask_token(self._transport, self._ledger, report, channel)

    def _ask_deletion(self, report: Queued) -> Outcome:
        def judge(place: str, outcome: Outcome) -> Outcome:
            return self._judged(report, place, outcome)

        if report.nodes:
            return delete_shares(self._transport, report, judge)
        return judge(self._collector, delete_report(self._transport, self._url(report), report.secret))

    def _url(self, report: Queued) -> str:
        return f"{self._collector}/v1/studies/{report.study}/reports/{report.report_id}"


def _shuffled_together(deletions: list[Queued], uploads: list[Queued]) -> list[Queued]:
    """Alternate both kinds, a deletion first, each kind in random order."""
    kinds = [CHANCE.sample(kind, len(kind)) for kind in (deletions, uploads)]
    return [report for pair in zip_longest(*kinds) for report in pair if report]
