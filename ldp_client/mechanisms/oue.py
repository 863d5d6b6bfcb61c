"""Optimized unary encoding (Wang et al. 2017): one noisy bit for each choice."""

from ldp_client.core.calibration import unary_threshold
from ldp_client.mechanisms.choice import ChoiceMechanism
from schemas.rational import Rational

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.core.randomness import Source
    from schemas.study import Question


class Oue(ChoiceMechanism):
    """Bit j is 1 with probability ½ at the true choice and threshold / 2**bits at each other.

    A payload has ⌈k/8⌉ bytes; choice j is bit j % 8 (lowest first) of byte j // 8; spare bits are 0.
    """

    name = "oue"

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self.threshold = unary_threshold(question.mechanism.epsilon)
        whole = 1 << self.bits
        self._state_odds(whole - self.threshold, self.threshold)
        self.p = Rational(1, 2)
        self.q = Rational(self.threshold, whole)
        self.payload_size = (self.choices + 7) // 8

    def randomise(self, quantised: int, random: "Source") -> bytes:
        """Bit-sliced: compares k random fractions with the threshold at once, lowest digit first.

        The time does not depend on the answer.
        """
        size = self.payload_size
        buffer = random(size * (self.bits + 1))
        below = 0
        for digit in range(self.bits):
            fresh = int.from_bytes(buffer[digit * size : (digit + 1) * size], "little")
            below = below | fresh if self.threshold >> digit & 1 else below & fresh
        # `fresh` holds the complement of a fraction's digit, so `below` says fraction < threshold.
        coin = int.from_bytes(buffer[self.bits * size :], "little")
        place = 1 << quantised
        kept = (below & ~place) | (coin & place)
        return (kept & ((1 << self.choices) - 1)).to_bytes(size, "little")

    def in_words(self) -> str:
        """The two bit probabilities."""
        return (
            f"One bit for each of {self.choices} choices is sent: the true one is 1 with probability "
            f"0.5, each other with probability {float(self.q):.4f}."
        )

    def check(self, payload: bytes) -> None:
        """Raises ReportError unless its spare bits are 0."""
        super().check(payload)
        if int.from_bytes(payload, "little") >> self.choices:
            raise self.impossible("has a bit set beyond the last choice")
