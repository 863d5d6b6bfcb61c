"""One bounded number on a grid, with Laplace noise (Dwork et al. 2006) or Gaussian noise.

Laplace noise gives pure ε; Gaussian noise (ε, δ), calibrated analytically (Balle & Wang 2018, METHODS 1.5).

If people may prefer not to say, a report has a noisy number in any case, and a noisy bit for the refusal: a
randomized-response coin. A refusal sends a noisy number from the middle of the bounds, so that length, time
and bytes reveal nothing. Two numbers differ in the number only. A number and a refusal differ in the coin,
and by at most half the bounds. So up to half of ε is free for the coin: the worst pair costs
max(ε of the number, ε of the coin + half the ε of the number).
"""

from fractions import Fraction
from typing import Any

from ldp_client.core.noise_levels import NOISE_BITS, gaussian_radius, laplace_levels, log_ratio
from ldp_client.core.quantise import grid_index
from ldp_client.core.randomness import Source, truth_or_other
from ldp_client.core.strips import NOISE_REACH, laplace, normal
from ldp_client.documents.question import Question
from ldp_client.documents.rules import refuse_study
from ldp_client.mechanisms.base import MECHANISMS, Mechanism, Privacy, pack_signed, unpack_signed


class NumberMechanism(Mechanism):
    """A grid point i in 0..levels, plus noise of scale `scale`; a subclass sets `levels` and `privacy`.

    A payload is one signed 32-bit integer in grid units: 0 is the lower bound, `levels` the upper.
    """

    payload_size = 4
    scale = 1 << NOISE_BITS
    levels: int

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        stated = question.mechanism
        self.levels = self.levels_at(stated.epsilon, stated.delta)
        if question.refusal_share is not None:
            # The ε that the coin leaves must hide half of the levels.
            rest = stated.epsilon - stated.epsilon * question.refusal_share
            self.levels = min(self.levels, 2 * self.levels_at(rest, stated.delta))
        assert question.bounds is not None
        self.bounds = question.bounds
        self._limits = float(self.bounds[0]), float(self.bounds[1])

    def levels_at(self, epsilon: Fraction, delta: Fraction) -> int:
        """Return the largest distance in grid points that the noise hides; subclasses implement it."""
        raise NotImplementedError(self.name)

    def quantise(self, answer: Any) -> int:
        """Return the nearest grid point; the nearest bound if out of bounds. Raises AnswerError."""
        return grid_index(answer, self._limits, self.levels, self.field)


class Laplace(NumberMechanism):
    """Release i in 0..levels as i + round(scale × Laplace(1)); true epsilon = levels / scale."""

    name = "laplace"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        problem = f"is below 2**-{NOISE_BITS}, the least possible"
        refuse_study(self.levels < 1, f"{self.where}.epsilon", problem, "study.epsilon_too_small")
        self.privacy = Privacy(Fraction(self.levels, self.scale))

    def levels_at(self, epsilon: Fraction, delta: Fraction) -> int:  # noqa: ARG002
        """Return ε in units of 1 / scale, rounded down."""
        return laplace_levels(epsilon)

    def randomise(self, quantised: int, random: Source) -> bytes:
        """Add Laplace noise. Any answer can give any 32-bit integer, except −2**31."""
        return pack_signed([quantised + laplace(1, random)[0]])

    def check(self, payload: bytes) -> None:
        """Raise ReportError unless the payload has four bytes and is not −2**31, which is never sent."""
        super().check(payload)
        if payload == b"\x80\x00\x00\x00":
            raise self.impossible("is out of range")


class Gaussian(NumberMechanism):
    """Release i in 0..levels as i + round(scale × N(0, 1)), truncated at 16 sd."""

    name = "gaussian"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        stated = question.mechanism
        problem = "epsilon or delta is too small for a number"
        refuse_study(self.levels < 1, self.where, problem, "study.epsilon_too_small_for_number")
        self.privacy = Privacy(stated.epsilon, stated.delta)

    def levels_at(self, epsilon: Fraction, delta: Fraction) -> int:
        """Return the radius of the analytic Gaussian mechanism."""
        return gaussian_radius(epsilon, delta, 1)

    def randomise(self, quantised: int, random: Source) -> bytes:
        """Add one normal."""
        return pack_signed([quantised + normal(1, random)[0]])

    def check(self, payload: bytes) -> None:
        """Raise ReportError if the number is further out of bounds than noise can move it."""
        super().check(payload)
        if not -NOISE_REACH <= unpack_signed(payload)[0] <= self.levels + NOISE_REACH:
            raise self.impossible("is out of range")


class RefusableNumber(Mechanism):
    """The number's payload, then a byte: 1 for a refusal, else 0, true with probability threshold / 2**32.

    number: the mechanism of numbers, whose levels leave the coin its share. middle: the grid point of
    refusals. p, q: the probabilities that the coin is true or false.
    """

    def __init__(self, question: Question, number: NumberMechanism) -> None:
        super().__init__(question)
        self.name = f"refusable_{number.name}"
        self.number = number
        self.bounds, self.levels, self.scale = number.bounds, number.levels, number.scale
        self.middle = number.levels // 2
        self.payload_size = number.payload_size + 1
        # Its coin.
        assert question.refusal_share is not None
        is_small = not self._tell_truth(question.mechanism.epsilon * question.refusal_share, 2)
        problem = "leaves too little epsilon for the refusal"
        refuse_study(is_small, f"{question.path}.refusal.share", problem, "study.refusal_share_too_large")
        self.privacy = number.privacy
        # With a δ, the ε that the coin leaves hides half the bounds, and the whole ε hides all of them.
        if not self.privacy.delta:
            far = log_ratio(*self.odds) + Fraction(self.levels - self.middle, self.scale)
            self.privacy = Privacy(max(self.privacy.epsilon, far))

    def quantise(self, answer: Any) -> tuple[int, int]:
        """Return (the middle, 1) for None, else (grid point, 0), in the same steps. Raises AnswerError."""
        refused = answer is None
        low, high = self.bounds
        index = self.number.quantise((float(low) + float(high)) / 2 if refused else answer)
        return self.middle if refused else index, int(refused)

    def randomise(self, quantised: tuple[int, int], random: Source) -> bytes:
        """Draw the number's noise, then the coin."""
        index, refused = quantised
        noisy = self.number.randomise(index, random)
        return noisy + bytes([truth_or_other(refused, 2, self.threshold, random)])

    def check(self, payload: bytes) -> None:
        """Raise ReportError if the number is impossible, or the last byte is neither 0 nor 1."""
        super().check(payload)
        self.number.check(payload[:-1])
        if payload[-1] > 1:
            raise self.impossible("must end in 0 or 1")


def number_mechanism(question: Question) -> Mechanism:
    """Build the mechanism of a number, with refusal if the question offers it. Raises StudyError."""
    kinds = {kind.name: kind for kind in (Laplace, Gaussian)}
    mechanism = kinds[question.mechanism.name](question)
    return RefusableNumber(question, mechanism) if question.refusal else mechanism


MECHANISMS["laplace"] = MECHANISMS["gaussian"] = number_mechanism
