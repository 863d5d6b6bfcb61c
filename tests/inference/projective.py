"""A mechanism from outside: projective geometry response (Feldman et al. 2022), on planes of 7 and 13 points.

A report is a line, which stands for the choices that are its points. Two points share one line, so that how
often one report supports two choices is not what independent bits would have.
"""

from fractions import Fraction

from ldp_client.core.noise_levels import CHOICE_BITS, truth_threshold_of_weights
from ldp_client.core.randomness import random_bits, uniform_below
from ldp_client.mechanisms.choice import ChoiceMechanism

# Line a is a plus these, modulo the number of points: each difference occurs once.
LINES = {7: (0, 1, 3), 13: (0, 1, 3, 9)}


class Projective(ChoiceMechanism):
    """A line through the true point with probability threshold / 2**32, else another line."""

    name = "projective"

    def __init__(self, question) -> None:
        super().__init__(question)
        self.points = 7 if self.choices <= 7 else 13
        self.line = LINES[self.points]
        through, past = len(self.line), self.points - len(self.line)
        whole = 1 << CHOICE_BITS
        self.threshold = truth_threshold_of_weights(question.mechanism.epsilon, through, past)
        self._state_odds(self.threshold * past, (whole - self.threshold) * through)
        self.p = Fraction(self.threshold, whole)
        # Of the lines through a point one goes through a given other; of those past it, all others of that.
        both = Fraction(self.threshold, whole * through)
        other = Fraction((whole - self.threshold) * (through - 1), whole * past)
        self.q = both + other
        self.payload_size = 1

    def randomise(self, quantised: int, random) -> bytes:
        truthful = random_bits(CHOICE_BITS, random) < self.threshold
        through, past = uniform_below(len(self.line), random), uniform_below(self._past, random)
        others = [step for step in range(self.points) if step not in self.line]
        step = self.line[through] if truthful else others[past]
        return bytes([(quantised - step) % self.points])

    @property
    def _past(self) -> int:
        return self.points - len(self.line)

    def supported(self, payload: bytes, index: int) -> bool:
        return (index - payload[0]) % self.points in self.line

    def check(self, payload: bytes) -> None:
        super().check(payload)
        if payload[0] >= self.points:
            raise self.impossible(f"is not one of {self.points} lines")
