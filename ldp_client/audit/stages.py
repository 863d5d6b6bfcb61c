"""What of a mechanism is audited: itself, or for a memoized one each of its promises.

A memoized mechanism draws a permanent noisy answer once and makes every report from it. It promises one
ε for the permanent answer, hence for all reports together, and a smaller one for a report alone.
"""

from copy import copy

from ldp_client.mechanisms.base import Mechanism

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.core.randomness import Source
    from schemas.rational import Rational
    from schemas.study import Question

REPORTS = 8


class Stage:
    """A mechanism to audit, the ε that the study states for it, and its name among several ("" if alone)."""

    def __init__(self, name: str, mechanism: "Any", epsilon: "Rational") -> None:
        self.name = name
        self.mechanism = mechanism
        self.epsilon = epsilon


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


def stages_of(mechanism: "Any", question: "Question") -> "list[Stage]":
    """The mechanism as it is; of a memoized one the permanent answer, one report, and many."""
    stated: "Any" = question.mechanism
    if not hasattr(mechanism, "permanent"):
        return [Stage("", mechanism, stated.epsilon)]
    alone = copy(mechanism)
    alone.privacy = mechanism.report_privacy
    return [
        Stage("permanent answer", mechanism.first, stated.epsilon),
        Stage("one report", alone, stated.instantaneous_epsilon),
        Stage(f"{REPORTS} reports", Repeated(mechanism), stated.epsilon),
    ]
