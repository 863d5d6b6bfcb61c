"""Send due reports and request due deletions."""

from dataclasses import dataclass, field
from time import monotonic, sleep

from ldp_client.device import outbox
from ldp_client.device.http import CHANCE, backoff
from ldp_client.device.ledger import BusyError, Ledger, locked
from ldp_client.device.outbox import Queued
from ldp_client.device.policy import Policy
from ldp_client.device.requests import Outcome, delete_report, judged, put_report
from ldp_client.device.shares import delete_shares, put_shares
from ldp_client.device.tickets import ask_token
from ldp_client.device.transport import Transport
from ldp_client.documents.channel import Channel
from ldp_client.documents.errors import LdpkitError, LedgerError
from ldp_client.words.text import counted

# No request starts later than this after its flush: a stalled server delays a flush no longer.
LONGEST_FLUSH_SECONDS = 300.0


@dataclass(repr=False)
class Flushed:
    """The result of a flush.

    Attributes:
        sent: number of reports that were sent.
        waiting: number of reports that wait, for any collector.
        reason: why reports or deletions wait.
        refused: a line for each report or deletion that was permanently refused, with the reason.
        scheduled: number of reports and deletions that leave later, together with others.
        deleted: number of withdrawn reports whose deletion the collector acknowledged.
        undeleted: number of withdrawn reports whose deletion still waits, at any collector.
    """

    sent: int = 0
    waiting: int = 0
    reason: str = ""
    refused: list[str] = field(default_factory=list)
    scheduled: int = 0
    deleted: int = 0
    undeleted: int = 0

    def __repr__(self) -> str:
        parts = [f"{counted(self.sent, 'report')} sent, {self.deleted} deleted"]
        if self.waiting + self.undeleted:
            parts.append(f"{self.waiting + self.undeleted} waiting: {self.reason}")
        if self.scheduled:
            leave = "leaves, or is deleted," if self.scheduled == 1 else "leave, or are deleted,"
            parts.append(f"{counted(self.scheduled, 'report')} {leave} together with others, as stated")
        parts += [f"refused: {line}" for line in self.refused]
        return "; ".join(parts)


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
        self._until = monotonic() + LONGEST_FLUSH_SECONDS
        self._result = Flushed()

    def flush(self, attempts: int) -> Flushed:
        """Flush in one process of a device at a time, so that no deletion overtakes its report."""
        result = self._result
        try:
            with locked(self._ledger.folder, 0):
                withdrawn, queued = self._read()
                self._in_turn(self._leaving([*withdrawn, *queued]), attempts)
                # Reports that were withdrawn while they were being sent.
                asked = {report.report_id for report in withdrawn}
                late = [report for report in self._read()[0] if report.report_id not in asked]
                self._in_turn(self._leaving(late), attempts)
        except BusyError:
            withdrawn, queued = self._read()
            result.waiting, result.undeleted = len(queued), len(withdrawn)
            result.reason = "another process of this device is sending"
        return result

    def _read(self) -> tuple[list[Queued], list[Queued]]:
        """Return the reports to delete and those to send."""
        with self._ledger.reading() as connection:
            return outbox.withdrawn(connection), outbox.pending(connection)

    def _leaving(self, reports: list[Queued]) -> list[Queued]:
        """Return the reports whose request leaves in this flush; count the others.

        A token request carries the person's ticket, so a batched report never leaves next to it. A first
        token request goes first. Among retries chance decides, so none blocks the others permanently. Through
        a relay one batched request leaves at a time, because two at once belong to one person.
        """
        # 1. Reports whose time has come, and whose requests this device may make.
        ready = [report for report in reports if not self._waits(report) and self._is_allowed(report)]
        # 2. Of these, requests that must leave in another window.
        # A request for a token shows the person's ticket to an issuer.
        asking = [report for report in ready if report.ticket and report.awaits_token]
        batched = [report for report in ready if self._batch(report) and report not in asking]
        later: list[Queued] = []
        if self._transport.relay:
            later = CHANCE.sample(batched, len(batched))[1:]
        elif asking and batched:
            is_first = any([report.token_text is None for report in asking])
            later = batched if is_first or CHANCE.getrandbits(1) else asking
        for report in later:
            self._postpone(report)
            self._result.scheduled += 1
        return [report for report in ready if report not in later]

    def _batch(self, report: Queued) -> Channel | None:
        """Return the channel that says when a request leaves; None if it leaves at once."""
        return None if self._now and not report.body else report.channel

    def _waits(self, report: Queued) -> bool:
        """Return True if a batched report's moment is still to come, and count it then."""
        channel = self._batch(report)
        if channel is None or report.due <= outbox.now():
            return False
        if report.due - outbox.now() > 2 * channel.hours * outbox.HOUR:
            # The clock was moved back.
            self._postpone(report)
        self._result.scheduled += 1
        return True

    def _is_allowed(self, report: Queued) -> bool:
        """Return True if this device may make the report's requests; else count it, with the reason.

        Shares name their nodes; other reports may not know their collector yet.
        """
        channel, reason = report.channel, ""
        tickets = channel.tickets if channel is not None else None
        try:
            self._policy.refuse_hosts(report.study, tickets, report.nodes, self._transport.relay)
            if report.origin != self._ledger.origin and not report.nodes:
                reason = f"it belongs to the collector {report.origin}: name that collector"
        except LdpkitError as error:
            reason = str(error)
        if reason:
            self._count_waiting(report, reason)
        return not reason

    def _in_turn(self, reports: list[Queued], attempts: int) -> None:
        """Make each request once before any request a second time, in random order, in `attempts` rounds.

        A server that is overloaded or cannot be reached gets no further request in a round. What fails waits
        behind the rest in the next round, so it blocks no other permanently.
        """
        turns = CHANCE.sample(reports, len(reports))
        for attempt in range(attempts):
            if turns and attempt:
                sleep(backoff(attempt))
            untried: list[Queued] = []
            failed: list[Queued] = []
            overloaded: dict[tuple[str, ...], Outcome] = {}
            for report in turns:
                servers = self._servers(report)
                is_tried = servers not in overloaded
                outcome = self._ask(report) if is_tried else overloaded[servers]
                if outcome.state == "waiting":
                    overloaded[servers] = outcome
                if outcome.state == "waiting" and attempt < attempts - 1:
                    (failed if is_tried else untried).append(report)
                else:
                    self._settle(report, outcome)
            turns = untried + failed

    def _servers(self, report: Queued) -> tuple[str, ...]:
        """Return what a report's next request goes to: its issuer, its nodes or the collector."""
        channel = report.channel
        if report.awaits_token and channel is not None and channel.tickets is not None:
            return (channel.tickets.issuer,)
        return tuple(report.nodes) or (self._collector,)

    def _ask(self, report: Queued) -> Outcome:
        """Make a report's request once. Before an upload leaves, the ledger notes durably that it may leave.

        The outcome may also be "withdrawn" (meanwhile).
        """
        if monotonic() > self._until:
            return Outcome("kept", "this flush took too long: the next flush makes the remaining requests")
        transport, channel = self._transport, report.channel
        url = f"{self._collector}/v1/studies/{report.study}/reports/{report.report_id}"
        try:
            if not report.body:
                if report.nodes:
                    return delete_shares(transport, report)
                return judged(report, delete_report(transport, url, report.secret))
            if report.awaits_token and channel is not None:
                return ask_token(transport, self._ledger, report, channel)
            with self._ledger.writing() as connection:
                if not outbox.try_now(connection, report.report_id):
                    return Outcome("withdrawn")
            if report.nodes:
                return put_shares(transport, report, report.token)
            return judged(report, put_report(transport, url, report.body, report.ticket, report.token))
        except LedgerError:
            raise
        except LdpkitError as error:
            return Outcome("kept", str(error))
        except Exception as error:
            # A report that cannot be sent must not block the others. Omit the error's text.
            return Outcome("kept", f"the request could not be made: {type(error).__name__}")

    def _settle(self, report: Queued, outcome: Outcome) -> None:
        """Count the last outcome of a report's request, and note in the ledger what it means."""
        result, state, report_id = self._result, outcome.state, report.report_id
        if state in ("waiting", "kept"):
            self._count_waiting(report, outcome.reason)
            if not report.awaits_token:
                self._postpone(report)
        elif report.awaits_token and state == "sent":
            result.scheduled += 1
        elif state != "withdrawn":
            with self._ledger.writing() as connection:
                if report.body:
                    outbox.conclude(connection, report_id, state)
                elif state == "sent":
                    outbox.drop(connection, report_id)
                else:
                    outbox.note_undeletable(connection, report_id)
            if state == "refused":
                what = "" if report.body else " can no longer be taken back"
                result.refused.append(f"report {report_id}{what}: {outcome.reason}")
            else:
                result.sent += bool(report.body)
                result.deleted += not report.body

    def _count_waiting(self, report: Queued, reason: str) -> None:
        self._result.waiting += bool(report.body)
        self._result.undeleted += not report.body
        self._result.reason = reason

    def _postpone(self, report: Queued) -> None:
        """Move a batched request to a random moment of the next window."""
        if report.channel is not None:
            with self._ledger.writing() as connection:
                outbox.postpone(connection, report.report_id, report.channel.hours)
