"""What may leave in one flush: nothing that tells, beside something else, whose report it is.

A request for a token has the person's invitation, whatever leaves in the clear their address. In a batch,
that is with a token or through a relay, nothing leaves beside the former; through a relay nothing beside
either nor in the hour after, and one request alone, as two are one person's. Nor is the address shown in the
hour after that by what was tried before.

What is never settled holds nothing else up for good. What was never tried goes first. Of what was, chance
takes what waits; while a relay is waited for, all that was tried in the clear waits with it.
"""

from ldp_client.device.pacing import CHANCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.device.channels import Channels
    from ldp_client.device.outbox import Queued


class Apart:
    """Which of the reports and deletions that are due leave now.

    held: they leave in a batch, in a flush to come; postponed: in the next window; yielding: in the clear,
    after those.
    """

    def __init__(self, channels: "Channels", fresh: "set[str]", forced: "set[str]") -> None:
        """fresh: ids of what was never tried; forced: of what leaves now, whatever that tells."""
        self._channels = channels
        self._fresh = fresh
        self._forced = forced
        self.held: "list[Queued]" = []
        self.postponed: "list[Queued]" = []
        self.yielding: "list[Queued]" = []

    def going(
        self, due: "list[Queued]", was_seen: bool, has_relayed: bool, is_unseen: bool
    ) -> "list[Queued]":
        """Those of `due` that leave. was_seen: the address, lately; has_relayed: in this flush already;
        is_unseen: after something did lately.
        """
        relayed = [report for report in due if self._channels.is_relayed(report) and self._may_wait(report)]
        clear = [report for report in due if self._channels.is_shown(report)]
        others = [report for report in due if report not in relayed and report not in clear]
        is_seen = was_seen or any([self._channels.is_relayed(report) for report in others])
        relayed, clear = self._one_kind(relayed, clear, is_seen, has_relayed, is_unseen)
        left = CHANCE.sample(relayed, len(relayed))
        self.postponed += left[1:]
        return [*others, *self._unasked(clear), *left[:1]]

    def _one_kind(
        self,
        relayed: "list[Queued]",
        clear: "list[Queued]",
        was_seen: bool,
        has_relayed: bool,
        is_unseen: bool,
    ) -> "tuple[list[Queued], list[Queued]]":
        """What goes through a relay, or what leaves in the clear."""
        urgent = [report for report in clear if self._is_fresh(report) or not self._may_wait(report)]
        if has_relayed:
            urgent = [report for report in clear if not self._may_wait(report)]
        elif is_unseen and len(urgent) < len(clear):
            # The relay waits too, else one that is never reached would keep the others for good.
            pass
        elif not relayed:
            return [], clear
        elif not was_seen and not urgent and (not clear or CHANCE.getrandbits(1)):
            self.yielding += clear
            return relayed, []
        elif not was_seen:
            urgent = clear
        self.held += relayed
        self.yielding += [report for report in clear if report not in urgent]
        return [], urgent

    def _unasked(self, clear: "list[Queued]") -> "list[Queued]":
        """What leaves in the clear, without what leaves in a batch beside a request for a token."""
        asking = [report for report in clear if self._channels.asks_token(report)]
        batched = [
            report
            for report in clear
            if self._channels.of(report) is not None and report not in asking and self._may_wait(report)
        ]
        if not asking or not batched:
            return clear
        is_new = any([self._is_fresh(report) for report in asking])
        late = batched if is_new or CHANCE.getrandbits(1) else asking
        self.postponed += late
        return [report for report in clear if report not in late]

    def _is_fresh(self, report: "Queued") -> bool:
        return report.report_id in self._fresh and not self._channels.has_asked(report)

    def _may_wait(self, report: "Queued") -> bool:
        return report.report_id not in self._forced
