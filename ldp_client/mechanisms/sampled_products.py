"""One product of two entries of a record, as one noisy bit (Duchi, Jordan & Wainwright 2018).

u = (1, features…, response), each entry in −1…1 by its own bounds; a yes/no is −1 or 1. Which product is
sent is drawn whatever the answers are. Its value is rounded to −1 or 1 without bias, and that sign is the
report's, by randomized response. So of the reports on a product with mean m over all people a share of
½(1 + gain · m) is positive, exactly, whatever law the entries have.
"""

import struct

from ldp_client.core.integers import bytes_below
from ldp_client.core.noise_levels import CHOICE_BITS, log_ratio, truth_threshold
from ldp_client.core.quantise import UNIT, UNIT_BITS
from ldp_client.core.randomness import random_bits, read, uniform_below
from ldp_client.documents.errors import StudyError
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms.base import Privacy, register
from ldp_client.mechanisms.record import RecordMechanism

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.core.randomness import Source
    from ldp_client.documents.study import Question

# A product of two entries is a whole number of 2**-40: it is rounded by 41 of 64 random bits, exactly.
SQUARE = UNIT * UNIT
SPARE_BITS = 64 - (2 * UNIT_BITS + 1)


@register
class SampledProducts(RecordMechanism):
    """Which of the products, and its sign: the true one with probability threshold / 2**32.

    coordinates: the pairs (i, j), i ≤ j, of entries whose products are sent: not those that are always 1.
    weights: how often each is drawn, out of their sum, `total`. ends: the weights, added up.
    gain: a product's mean is so many times the difference of the shares of positive and negative reports.
    A payload is 2 × the product's place + 1 if the sign is positive, big-endian.
    """

    name = "sampled_products"

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self.coordinates = self._pairs()
        stated = question.mechanism.weights
        self.weights = [stated[self._kind(i, j)] for i, j in self.coordinates]
        self.total, self.ends = 0, []
        for weight in self.weights:
            self.total += weight
            self.ends.append(self.total)
        # 0 where they are not all the same.
        self._weight = self.weights[0] if min(self.weights) == max(self.weights) else 0
        self._ceiling = (1 << 32) - (1 << 32) % self.total
        self.threshold = truth_threshold(question.mechanism.epsilon, 2)
        whole = 1 << CHOICE_BITS
        self.odds = (self.threshold, whole - self.threshold)
        if self.odds[0] <= self.odds[1]:
            raise StudyError(f"{self.where}.epsilon", "is too small for a sign")
        self.p = Rational(self.threshold, whole)
        self.gain = Rational(2 * self.threshold - whole, whole)
        self.privacy = Privacy(log_ratio(self.odds[0], self.odds[1]), Rational(0))
        self.payload_size = bytes_below(2 * len(self.coordinates))

    def _pairs(self) -> "list[tuple[int, int]]":
        """All but squares of the constant and of a yes/no."""
        known = [True] + [field.bounds is None for field in self.features] + [self.binary]
        size = len(known)
        return [(i, j) for i in range(size) for j in range(i, size) if i < j or not known[i]]

    def _kind(self, i: int, j: int) -> str:
        if i == j:
            return "squares"
        if i == 0:
            return "means"
        return "response" if j > len(self.features) else "features"

    def quantise(self, answer: "Any") -> "list[int]":
        """u in units of 2**-20. Raises AnswerError."""
        features, response = self.quantise_fields(answer, UNIT, UNIT)
        vector = [UNIT]
        vector.extend(features)
        vector.append(response)
        return vector

    def randomise(self, quantised: "list[int]", random: "Source") -> bytes:
        """Draws the product and rounds it, then the sign that is told."""
        word, rounding = struct.unpack(">IQ", read(random, 12))
        place = self._drawn(word % self.total if word < self._ceiling else uniform_below(self.total, random))
        i, j = self.coordinates[place]
        positive = rounding >> SPARE_BITS < SQUARE + quantised[i] * quantised[j]
        true = random_bits(CHOICE_BITS, random) < self.threshold
        told: int = 2 * place + (positive == true)
        return told.to_bytes(self.payload_size, "big")

    def _drawn(self, number: int) -> int:
        """The first product whose end is above the number, which no answer has a part in."""
        if self._weight:
            return number // self._weight
        low, high = 0, len(self.ends) - 1
        while low < high:
            middle = (low + high) // 2
            if self.ends[middle] > number:
                high = middle
            else:
                low = middle + 1
        return low

    def check(self, payload: bytes) -> None:
        """Raises ReportError unless it names a product."""
        super().check(payload)
        if int.from_bytes(payload, "big") >= 2 * len(self.coordinates):
            raise self.impossible(f"is not one of {len(self.coordinates)} products")
