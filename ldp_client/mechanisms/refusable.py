"""A number that people may prefer not to say: always a noisy number, and a noisy bit for the refusal.

The bit is a randomized-response coin. A refusal sends a noisy number from the middle of the bounds, so that
length, time and bytes reveal nothing. Two numbers differ in the number only. A number and a refusal differ in
the coin, and by at most half the bounds. So up to half of ε is free for the coin: the worst pair costs
max(ε of the number, ε of the coin + half the ε of the number).
"""

from ldp_client.core.noise_levels import log_ratio
from ldp_client.core.randomness import Source, truth_or_other
from ldp_client.core.types import Any
from ldp_client.documents.errors import StudyError
from ldp_client.documents.question import Question
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms.base import Mechanism, Privacy
from ldp_client.mechanisms.number import Gaussian, Laplace, NumberMechanism


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
        self._set_coin(question)
        self.payload_size = number.payload_size + 1

    def _set_coin(self, question: Question) -> None:
        stated = question.mechanism
        assert question.refusal_share is not None
        of_coin = stated.epsilon * question.refusal_share
        if not self._tell_truth(of_coin, 2):
            raise StudyError(
                f"{question.path}.refusal.share",
                "leaves too little epsilon for the refusal",
                code="study.refusal_share_too_large",
            )
        coin = log_ratio(*self.odds)
        if Rational(0) < stated.delta:
            # The ε that the coin leaves hides half the bounds; the whole ε hides all of them.
            self.privacy = self.number.privacy
            return
        far = coin + Rational(self.levels - self.middle, self.scale)
        number = self.number.privacy.epsilon
        self.privacy = Privacy(far if number < far else number, Rational(0))

    def quantise(self, answer: Any) -> "tuple[int, int]":
        """Return (the middle, 1) for None, else (grid point, 0), in the same steps. Raises AnswerError."""
        refused = answer is None
        low, high = self.bounds
        index = self.number.quantise((float(low) + float(high)) / 2 if refused else answer)
        return self.middle if refused else index, int(refused)

    def randomise(self, quantised: "tuple[int, int]", random: Source) -> bytes:
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


def laplace(question: Question) -> Mechanism:
    """Build the Laplace mechanism for a number, with refusal if the question offers it."""
    return _offered(question, Laplace(question))


def gaussian(question: Question) -> Mechanism:
    """Build the Gaussian mechanism for a number, with refusal if the question offers it."""
    return _offered(question, Gaussian(question))


def _offered(question: Question, number: NumberMechanism) -> Mechanism:
    return RefusableNumber(question, number) if question.refusal else number
