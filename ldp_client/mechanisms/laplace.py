"""Laplace noise on one bounded number: pure epsilon (Dwork et al. 2006)."""

from ldp_client.core.calibration import NOISE_BITS, laplace_levels
from ldp_client.core.quantise import grid_index
from ldp_client.core.strips import laplace
from ldp_client.mechanisms.base import Mechanism, Privacy, pack_signed
from schemas.errors import StudyError
from schemas.rational import Rational

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.core.randomness import Source
    from schemas.study import Question


class Laplace(Mechanism):
    """i in 0..levels, released as i + round(scale × Laplace(1)); true epsilon = levels / scale.

    A payload is one signed 32-bit integer in grid units: 0 is the lower bound, `levels` the upper.
    """

    name = "laplace"
    payload_size = 4

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        assert question.bounds is not None
        self.bounds = question.bounds
        self._limits = float(self.bounds[0]), float(self.bounds[1])
        self.scale = 1 << NOISE_BITS
        self.levels = laplace_levels(question.mechanism.epsilon)
        if self.levels < 1:
            raise StudyError(f"{self.where}.epsilon", f"is below 2**-{NOISE_BITS}, the least possible")
        self.privacy = Privacy(Rational(self.levels, self.scale), Rational(0))

    def quantise(self, answer: "Any") -> int:
        """The nearest grid point; beyond the bounds the nearest bound, missing or NaN the middle."""
        return grid_index(answer, self._limits, self.levels, self.field)

    def randomise(self, quantised: int, random: "Source") -> bytes:
        """Every 32-bit integer is possible, whatever the answer."""
        return pack_signed([quantised + laplace(1, random)[0]])

    def in_words(self) -> str:
        """The clipping and the noise scale in the question's own units."""
        low, high = self.bounds
        scale = (float(high) - float(low)) / float(self.privacy.epsilon)
        return f"Clipped to {low}..{high}, then Laplace noise of scale {scale:.4g} is added."

    def check(self, payload: bytes) -> None:
        """Raises ReportError unless it has four bytes and is not the one integer that is never sent."""
        super().check(payload)
        if payload == b"\x80\x00\x00\x00":
            raise self.impossible("is out of range")
