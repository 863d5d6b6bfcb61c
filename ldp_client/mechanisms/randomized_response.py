"""Randomized response: the true choice, or any other (Warner 1965; k-ary: Kairouz et al. 2014)."""

from ldp_client.core.integers import bytes_below
from ldp_client.core.noise_levels import truth_threshold
from ldp_client.core.randomness import truth_or_other
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms.choice import ChoiceMechanism

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.core.randomness import Source
    from ldp_client.documents.study import Question


class RandomizedResponse(ChoiceMechanism):
    """Report the true choice with probability threshold / 2**bits, else a uniform other choice.

    S is the reported choice. A payload is its index, big-endian, in the fewest bytes that hold k values.
    """

    name = "randomized_response"

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self.threshold = truth_threshold(question.mechanism.epsilon, self.choices)
        whole = 1 << self.bits
        others = self.choices - 1
        self._state_odds(self.threshold * others, whole - self.threshold)
        self.p = Rational(self.threshold, whole)
        self.q = Rational(whole - self.threshold, whole * others)
        self.payload_size = bytes_below(self.choices)

    def randomise(self, quantised: int, random: "Source") -> bytes:
        """Draw the coin and the other choice, even if the other choice is not needed."""
        reported = truth_or_other(quantised, self.choices, self.threshold, random)
        return reported.to_bytes(self.payload_size, "big")

    def supported(self, payload: bytes, index: int) -> bool:
        """Return True if it is the reported choice."""
        return int.from_bytes(payload, "big") == index

    def check(self, payload: bytes) -> None:
        """Raise ReportError unless the payload is the index of a choice."""
        super().check(payload)
        if int.from_bytes(payload, "big") >= self.choices:
            raise self.impossible(f"is not one of {self.choices} choices")
