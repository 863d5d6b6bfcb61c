"""Gaussian noise on one bounded number: (ε, δ), analytic calibration (Balle & Wang 2018, METHODS 1.5)."""

from ldp_client.core.calibration import gaussian_radius
from ldp_client.core.strips import NOISE_REACH, normal
from ldp_client.documents.errors import StudyError
from ldp_client.mechanisms.base import Privacy, pack_signed, unpack_signed
from ldp_client.mechanisms.number import NumberMechanism

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.core.randomness import Source
    from ldp_client.documents.study import Question


class Gaussian(NumberMechanism):
    """i in 0..levels, released as i + round(scale × N(0, 1)), truncated at 16 sd."""

    name = "gaussian"

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        stated = question.mechanism
        self.levels = gaussian_radius(stated.epsilon, stated.delta, 1)
        if self.levels < 1:
            raise StudyError(self.where, "epsilon or delta is too small for a number")
        self.privacy = Privacy(stated.epsilon, stated.delta)

    def randomise(self, quantised: int, random: "Source") -> bytes:
        """One normal."""
        return pack_signed([quantised + normal(1, random)[0]])

    def check(self, payload: bytes) -> None:
        """Raises ReportError where the number is beyond bounds and noise together."""
        super().check(payload)
        if not -NOISE_REACH <= unpack_signed(payload)[0] <= self.levels + NOISE_REACH:
            raise self.impossible("is out of range")
