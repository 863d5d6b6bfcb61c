"""Gaussian noise on one bounded number: (ε, δ), analytic calibration (Balle & Wang 2018, METHODS 1.5)."""

from ldp_client.core.calibration import NOISE_BITS, gaussian_radius
from ldp_client.core.quantise import grid_index
from ldp_client.core.strips import NOISE_REACH, normal
from ldp_client.mechanisms.base import Mechanism, Privacy, pack_signed, unpack_signed
from schemas.errors import StudyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.core.randomness import Source
    from schemas.study import Question


class Gaussian(Mechanism):
    """i in 0..levels, released as i + round(scale × N(0, 1)), truncated at 16 sd.

    A payload is one signed 32-bit integer in grid units: 0 is the lower bound, `levels` the upper.
    """

    name = "gaussian"
    payload_size = 4

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        assert question.bounds is not None
        self.bounds = question.bounds
        self._limits = float(self.bounds[0]), float(self.bounds[1])
        self.scale = 1 << NOISE_BITS
        stated = question.mechanism
        self.levels = gaussian_radius(stated.epsilon, stated.delta, 1)
        if self.levels < 1:
            raise StudyError(self.where, "epsilon or delta is too small for a number")
        self.privacy = Privacy(stated.epsilon, stated.delta)

    def quantise(self, answer: "Any") -> int:
        """The nearest grid point; beyond the bounds the nearest bound, missing or NaN the middle."""
        return grid_index(answer, self._limits, self.levels, self.field)

    def randomise(self, quantised: int, random: "Source") -> bytes:
        """One normal."""
        return pack_signed([quantised + normal(1, random)[0]])

    def in_words(self) -> str:
        """The clipping and the noise's standard deviation in the question's own units."""
        low, high = self.bounds
        sd = (float(high) - float(low)) * self.scale / self.levels
        return f"Clipped to {low}..{high}, then Gaussian noise of standard deviation {sd:.4g} is added."

    def check(self, payload: bytes) -> None:
        """Raises ReportError where the number is beyond bounds and noise together."""
        super().check(payload)
        if not -NOISE_REACH <= unpack_signed(payload)[0] <= self.levels + NOISE_REACH:
            raise self.impossible("is out of range")
