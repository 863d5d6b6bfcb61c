"""The result of a flush, and its text."""

from ldp_client.words.text import say


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

    def __init__(self) -> None:
        self.sent = 0
        self.waiting = 0
        self.scheduled = 0
        self.batched = 0
        self.refused: list[str] = []
        self.deleted = 0
        self.undeleted = 0
        self.reason = ""
        self.stuck = 0
        self.stuck_reason = ""

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
