"""Optimized unary encoding (Wang et al. 2017): one noisy bit for each choice."""

from ldp_client.core.calibration import unary_threshold
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms.unary import UnaryMechanism, bits_below, read_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.core.randomness import Source
    from ldp_client.documents.study import Question


class Oue(UnaryMechanism):
    """Bit j is 1 with probability ½ at the true choice and threshold / 2**bits at each other."""

    name = "oue"

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self.threshold = unary_threshold(question.mechanism.epsilon)
        whole = 1 << self.bits
        self._state_odds(whole - self.threshold, self.threshold)
        self.p = Rational(1, 2)
        self.q = Rational(self.threshold, whole)

    def randomise(self, quantised: int, random: "Source") -> bytes:
        """The noisy bits, with a fair coin in the true place. The time does not depend on the answer."""
        parts = read_parts(self.bits + 1, self.payload_size, random)
        noisy = bytearray(self.pack(bits_below(self.threshold, parts)))
        # Within one byte: the time of a long integer's arithmetic would tell where its highest bit is.
        place, own = quantised >> 3, 1 << (quantised & 7)
        noisy[place] = (noisy[place] & ~own) | (parts[-1][place] & own)
        return bytes(noisy)
