"""Choice mechanisms, whose reports support a random set of choices, and randomized response, the simplest.

A report encodes a set S of choices. P(report | x) is c·e^ε if x is in S, else c, with c the same for
every x (METHODS 3.2b). Subclasses define how S is drawn and encoded.
"""

from fractions import Fraction
from typing import Any

from ldp_client.core.integers import bytes_below
from ldp_client.core.noise_levels import CHOICE_BITS, log_ratio
from ldp_client.core.randomness import Source, truth_or_other
from ldp_client.documents.errors import AnswerError
from ldp_client.documents.question import Question
from ldp_client.documents.rules import refuse_study
from ldp_client.mechanisms.base import Mechanism, Privacy, register

MOST_DIGITS = 7
# A label has at most 200 characters.
LABEL_BYTES = 4 * 200


class Places:
    """Find the index of a label in a number of steps that does not depend on the label.

    A list search takes longer for later labels, and the author of the labels can provoke collisions in a
    dictionary. This is a binary search among sorted digests; its steps depend only on their number.
    """

    def __init__(self, labels: Any) -> None:
        digests = sorted([(_digest(label), index) for index, label in enumerate(labels)])
        self._digests = [digest for digest, _ in digests]
        self._indices = [index for _, index in digests]
        self._half = 1
        while 2 * self._half < len(digests):
            self._half *= 2
        self._digests.extend([b"\xff" * 32] * (2 * self._half - len(digests)))

    def of(self, label: str) -> int:
        """Return the label's index, or −1 if it is unknown."""
        digest = _digest(label)
        at, step = 0, self._half
        while step:
            at += step * (self._digests[at + step] <= digest)
            step >>= 1
        return self._indices[at] if self._digests[at] == digest else -1


def _digest(label: str) -> bytes:
    """Return the SHA-256 of the label, padded to a fixed length."""
    from hashlib import sha256

    try:
        text = label.encode()
    except UnicodeError:  # half of a surrogate pair: no label has one
        text = b""
    return sha256(len(text).to_bytes(4, "big") + text + bytes(max(LABEL_BYTES - len(text), 0))).digest()


class ChoiceMechanism(Mechanism):
    """A mechanism for one of k choices.

    choices: k. labels: their names, or range(k); the last label is None if the question offers refusal.
    bits: probabilities are integers over 2**bits. p: probability that S contains the true choice; q: that S
    contains a given other choice. odds: (a, b) with e^ε = a / b exactly. bitwise: whether a payload has a bit
    for each choice, drawn independently.
    """

    bits = CHOICE_BITS
    bitwise = False

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        labels: Any = question.choices
        self.labels = (*labels, None) if self.refusal else labels
        self.choices = len(self.labels)
        self.numbered = question.numbered
        self._places = None if self.numbered else Places(question.choices)
        self.boolean = question.ask == "yes_no"

    def quantise(self, answer: Any) -> int:
        """Return the index of the choice; a yes/no also accepts True and False. Raises AnswerError.

        Numbered choices are given as int or as text. If the question offers refusal, None is the last
        choice.
        """
        if self.boolean and isinstance(answer, bool):
            if not self.refusal:
                return int(answer)
            answer = self.labels[int(answer)]
        if self._places is None:
            return self._number(answer)
        # Always search: a shortcut for refusals would reveal them by their time.
        index = self._places.of(answer if isinstance(answer, str) else "")
        index = self.choices - 1 if self.refusal and answer is None else index
        if index < 0:
            raise AnswerError.say("core.one_of_choices", self.field, choices=self.choices)
        return index

    def _number(self, answer: Any) -> int:
        if isinstance(answer, str) and 0 < len(answer) <= MOST_DIGITS:
            digits = "0" * (MOST_DIGITS - len(answer)) + answer
            if all(c in "0123456789" for c in digits):
                answer = int(digits)
        if not isinstance(answer, int) or isinstance(answer, bool) or not 0 <= answer < self.choices:
            raise AnswerError.say("core.whole_number", self.field, largest=self.choices - 1)
        return answer

    def supported(self, payload: bytes, index: int) -> bool:
        """Return True if choice `index` is in the set S that a possible payload encodes."""
        raise NotImplementedError(self.name)

    def support_probability(self, true: int, index: int) -> Fraction:
        """Return the exact probability that S contains choice `index` if the answer is choice `true`."""
        return self.p if true == index else self.q

    def _respond(self, epsilon: Fraction, count: int) -> None:
        """Set odds and privacy of randomized response among `count` values."""
        self._tell_truth(epsilon, count)
        self._state_odds(*self.odds)

    def _state_odds(self, often: int, seldom: int) -> None:
        """Set odds and privacy from the two weights of a report, x in S and x not in S."""
        is_small = seldom < 1 or often <= seldom
        problem = f"is too small for {self.choices} choices"
        refuse_study(is_small, f"{self.where}.epsilon", problem, "study.epsilon_too_small_for_choices")
        self.odds = (often, seldom)
        self.privacy = Privacy(log_ratio(often, seldom))


@register
class RandomizedResponse(ChoiceMechanism):
    """Report the true choice with probability threshold / 2**bits, else a uniform other choice.

    Warner 1965; for k choices: Kairouz et al. 2014.
    S is the reported choice. A payload is its index, big-endian, in the fewest bytes that hold k values.
    """

    name = "randomized_response"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self._respond(question.mechanism.epsilon, self.choices)
        self.payload_size = bytes_below(self.choices)

    def randomise(self, quantised: int, random: Source) -> bytes:
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
            raise self.impossible(f"is not among {self.choices} choices")
