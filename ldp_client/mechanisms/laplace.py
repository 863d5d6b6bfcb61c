"""Laplace noise on one bounded number: pure epsilon (Dwork et al. 2006)."""

from ldp_client.core.calibration import NOISE_BITS, laplace_levels
from ldp_client.core.strips import laplace
from ldp_client.documents.errors import StudyError
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms.base import Privacy, pack_signed
from ldp_client.mechanisms.number import NumberMechanism

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.core.randomness import Source
    from ldp_client.documents.study import Question


class Laplace(NumberMechanism):
    """i in 0..levels, released as i + round(scale × Laplace(1)); true epsilon = levels / scale."""

    name = "laplace"

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self.levels = laplace_levels(question.mechanism.epsilon)
        if self.levels < 1:
            raise StudyError(f"{self.where}.epsilon", f"is below 2**-{NOISE_BITS}, the least possible")
        self.privacy = Privacy(Rational(self.levels, self.scale), Rational(0))

    def randomise(self, quantised: int, random: "Source") -> bytes:
        """Every 32-bit integer is possible, whatever the answer."""
        return pack_signed([quantised + laplace(1, random)[0]])

    def check(self, payload: bytes) -> None:
        """Raises ReportError unless it has four bytes and is not the one integer that is never sent."""
        super().check(payload)
        if payload == b"\x80\x00\x00\x00":
            raise self.impossible("is out of range")
