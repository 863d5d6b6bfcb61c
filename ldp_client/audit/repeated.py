"""A memoized mechanism's reports: many of one permanent answer, and the noise of one by itself."""

from ldp_client.audit.kinds import is_unary
from ldp_client.mechanisms.base import Mechanism
from schemas.rational import Rational

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.core.randomness import Source

REPORTS = 8


class Repeated(Mechanism):
    """REPORTS reports of one permanent answer, one behind the other, at the longitudinal ε."""

    name = "memoized"

    def __init__(self, of: "Any") -> None:
        self.of = of
        self.field, self.privacy = of.field, of.privacy
        self.payload_size = REPORTS * of.payload_size

    def quantise(self, answer: "Any") -> int:
        index: int = self.of.quantise(answer)
        return index

    def randomise(self, quantised: int, random: "Source") -> bytes:
        """One permanent answer, then a report after the other."""
        kept = self.of.permanent(quantised, random)
        return b"".join([self.of.instantaneous(kept, random) for _ in range(REPORTS)])

    def check(self, payload: bytes) -> None:
        """Each report by itself."""
        super().check(payload)
        for report in self.reports(payload):
            self.of.check(report)

    def votes(self, payload: bytes, one: int, other: int) -> int:
        """How many more reports support the one choice than the other."""
        supported = self.of.supported
        return sum([supported(report, one) - supported(report, other) for report in self.reports(payload)])

    def reports(self, payload: bytes) -> "list[bytes]":
        """The single reports."""
        size = self.of.payload_size
        return [payload[start : start + size] for start in range(0, len(payload), size)]


class Again:
    """The noise of each report, on a permanent answer that is the true one: only for its coin.

    unary: whether it flips bits. p, q: the coin's probability, as the mechanism's `again` states it.
    """

    def __init__(self, of: "Any") -> None:
        self.of = of
        self.payload_size = of.payload_size
        self.supported = of.supported
        self.unary = is_unary(of.first)
        self.p = self.q = Rational(of.again, 1 << of.bits)

    def randomise(self, quantised: int, random: "Source") -> bytes:
        """One report of the choice."""
        if self.unary:
            kept = self.of.first.pack(1 << quantised)
        else:
            kept = quantised.to_bytes(self.payload_size, "big")
        report: bytes = self.of.instantaneous(kept, random)
        return report
