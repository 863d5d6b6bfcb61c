"""Symmetric unary encoding (basic RAPPOR; Wang et al. 2017): one bit for each choice, each flipped alike."""

from ldp_client.core.calibration import unary_threshold
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms.unary import UnaryMechanism, biased_bits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.core.randomness import Source
    from ldp_client.documents.study import Question


class Sue(UnaryMechanism):
    """The true choice's bit is 1, the others' are 0; each is flipped with probability threshold / 2**bits.

    Two answers differ in two bits, so e^ε = ((2**bits − threshold) / threshold)².
    """

    name = "sue"

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self.threshold = unary_threshold(question.mechanism.epsilon * Rational(1, 2))
        whole = 1 << self.bits
        kept = whole - self.threshold
        self._state_odds(kept * kept, self.threshold * self.threshold)
        self.p = Rational(kept, whole)
        self.q = Rational(self.threshold, whole)

    def randomise(self, quantised: int, random: "Source") -> bytes:
        """The true choice's bits xor the flips. The time does not depend on the answer."""
        flips = bytearray(self.pack(biased_bits(self.threshold, self.payload_size, random)))
        flips[quantised >> 3] ^= 1 << (quantised & 7)
        return bytes(flips)
