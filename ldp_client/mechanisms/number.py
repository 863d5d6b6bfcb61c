"""One bounded number on a grid, with Laplace noise (Dwork et al. 2006) or Gaussian noise.

Laplace noise gives pure ε; Gaussian noise (ε, δ), calibrated analytically (Balle & Wang 2018, METHODS 1.5).
"""

from ldp_client.core.noise_levels import NOISE_BITS, gaussian_radius, laplace_levels
from ldp_client.core.quantise import grid_index
from ldp_client.core.randomness import Source
from ldp_client.core.strips import NOISE_REACH, laplace, normal
from ldp_client.core.types import Any
from ldp_client.documents.errors import StudyError
from ldp_client.documents.question import Question
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms.base import Mechanism, Privacy, pack_signed, unpack_signed


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
            # The ε that the coin of `refusable.py` leaves must hide half of the levels.
            rest = stated.epsilon - stated.epsilon * question.refusal_share
            self.levels = min(self.levels, 2 * self.levels_at(rest, stated.delta))
        assert question.bounds is not None
        self.bounds = question.bounds
        self._limits = float(self.bounds[0]), float(self.bounds[1])

    def levels_at(self, epsilon: Rational, delta: Rational) -> int:
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
        if self.levels < 1:
            raise StudyError(
                f"{self.where}.epsilon",
                f"is below 2**-{NOISE_BITS}, the least possible",
                code="study.epsilon_too_small",
            )
        self.privacy = Privacy(Rational(self.levels, self.scale), Rational(0))

    def levels_at(self, epsilon: Rational, delta: Rational) -> int:  # noqa: ARG002
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
        if self.levels < 1:
            raise StudyError(
                self.where,
                "epsilon or delta is too small for a number",
                code="study.epsilon_too_small_for_number",
            )
        self.privacy = Privacy(stated.epsilon, stated.delta)

    def levels_at(self, epsilon: Rational, delta: Rational) -> int:
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
