"""What a flush has done, and how it is said."""

from ldp_client.words.text import say


class Flushed:
    """The result of a flush.

    sent, waiting, refused (for good, with reasons; deletions too): reports. later: reports whose time has not
    come; batched: those of them that leave together with others, at a time that nobody hurries.
    deleted, undeleted: withdrawn reports whose deletion the collector did or did not acknowledge.
    waiting and undeleted count those of other collectors too. reason: why something waits.
    stuck: those of them for which no other flush is likely to do more; stuck_reason: why. Where there are
    others, `reason` is theirs.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.waiting = 0
        self.later = 0
        self.batched = 0
        self.refused: "list[str]" = []
        self.deleted = 0
        self.undeleted = 0
        self.reason = ""
        self.stuck = 0
        self.stuck_reason = ""

    @property
    def likely(self) -> int:
        """How many of those that wait may get on at another flush."""
        return self.waiting + self.undeleted - self.stuck

    def count_batched(self) -> None:
        """Add one that leaves in a batch, later."""
        self.later += 1
        self.batched += 1

    def __repr__(self) -> str:
        parts = [say("device.sent", count=self.sent, deleted=self.deleted)]
        for count, reason in ((self.likely, self.reason), (self.stuck, self.stuck_reason)):
            if count:
                parts.append(say("device.waiting", count=count, reason=reason))
        if self.later:
            parts.append(say("device.later", count=self.later))
        if self.batched:
            parts.append(say("device.batched", count=self.batched))
        parts += [say("device.refused", report=line) for line in self.refused]
        return "; ".join(parts)
