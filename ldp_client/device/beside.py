"""Select the requests of one flush so that none reveals whose report another request carries.

A token request carries the person's invitation. A request in the clear shows their address. A batched report
(with a token or through a relay) therefore never leaves alongside a token request. A relayed request never
leaves alongside a request in the clear, or in the hour after it. Only one relayed request leaves at a time,
as two would belong to one person. In the hour after it, retried requests do not show the address either.

A request that never succeeds blocks no other request permanently. New requests go first. Among retried
requests, chance decides which wait. In the hour after a relayed request, all retried requests in the clear
wait, and the relay waits with them.
"""

from ldp_client.device.pacing import CHANCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.device.channels import Channels
    from ldp_client.device.outbox import Queued


class Apart:
    """Selects which due reports and deletions leave now.

    held: they leave in a batch, in a later flush. postponed: they leave in the next window. yielding: they
    leave in the clear, after relayed requests.
    """

    def __init__(self, channels: "Channels", fresh: "set[str]", forced: "set[str]") -> None:
        """fresh: ids of reports and deletions never tried. forced: ids that leave now regardless."""
        self._channels = channels
        self._fresh = fresh
        self._forced = forced
        self.held: "list[Queued]" = []
        self.postponed: "list[Queued]" = []
        self.yielding: "list[Queued]" = []

    def going(
        self, due: "list[Queued]", was_seen: bool, has_relayed: bool, is_unseen: bool
    ) -> "list[Queued]":
        """Return the reports of `due` that leave now.

        was_seen: the device's address was shown lately. has_relayed: this flush already relayed a request.
        is_unseen: a request left through a relay lately.
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
        """Return (relayed, clear): only one kind leaves, so one list is empty."""
        urgent = [report for report in clear if self._is_fresh(report) or not self._may_wait(report)]
        if has_relayed:
            urgent = [report for report in clear if not self._may_wait(report)]
        elif is_unseen and len(urgent) < len(clear):
            # The relay waits too: an unreachable relay would otherwise block the other requests forever.
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
        """Return the requests in the clear, with either token requests or batched reports, not both."""
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
