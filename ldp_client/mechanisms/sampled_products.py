"""One or several products of two entries of a record, as noisy bits (Duchi, Jordan & Wainwright 2018).

u = (1, features…, response), each entry in −1…1 by its own bounds; a yes/no is −1 or 1. A number that is cut
into bins has an entry for each cut, 1 from there on; a choice one for each character of its place in binary
(Cormode, Kulkarni & Srivastava 2018). Of two entries of one field no product is sent then. Which product
is sent is drawn whatever the answers are. Its value is rounded to −1 or 1 without bias, and that sign is the
report's, by randomized response. So of the reports on a product with mean m over all people a share of
½(1 + gain · m) is positive, exactly, whatever law the entries have.

Where a report has k products, all of them stand in blocks of k, and one block is drawn. Each of its products
is rounded by itself, and the pattern of the k signs sent by 2^k-ary randomized response. Each sign, and each
product of signs of one report, then has a share of ½(1 + gain · m) positive ones, m its mean over all people.
"""

import struct

from ldp_client.core.integers import bytes_below, first_above
from ldp_client.core.noise_levels import CHOICE_BITS, log_ratio, truth_threshold
from ldp_client.core.quantise import UNIT, UNIT_BITS
from ldp_client.core.randomness import random_bits, read, uniform_below
from ldp_client.documents.errors import StudyError
from ldp_client.documents.rational import Rational
from ldp_client.documents.study_rules import power_of_two
from ldp_client.mechanisms.base import Privacy, register
from ldp_client.mechanisms.record import RecordMechanism

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.core.randomness import Source
    from ldp_client.documents.study import Field, Question

# Of products of two fields that have several entries each has its part of so much, rounded down: together
# they are drawn as often as the one product of two other fields, or up to 7.2 % less often.
PARTS = 2520
# A product of two entries is a whole number of 2**-40: it is rounded by 41 of 64 random bits, exactly.
SQUARE = UNIT * UNIT
SPARE_BITS = 64 - (2 * UNIT_BITS + 1)


@register
class SampledProducts(RecordMechanism):
    """Which of the products, and its sign: the true one with probability threshold / 2**32.

    codes: of each feature with levels the entries (−1 and 1) of each level.
    owners: each entry's field, from 0 for the constant to the response.
    coordinates: the pairs (i, j), i ≤ j, of entries whose products are sent: not those that are always 1, or
    known from others.
    signs: k, the products of one report. patterns: 2**k. blocks: the products that are sent together, as
    places in `coordinates`; where their number is no multiple of k, the last block has some of the first.
    With one product a report a block is a product, in the same order.
    weights: how often each block is drawn, out of their sum, `total`: what its products weigh together.
    ends: the weights, added up.
    gain: the difference of the shares of a product's positive and negative reports is so many times its mean.
    A payload is 2**k × the block's place + the pattern, big-endian: the bit of its first product is the
    highest, 1 if the sign is positive.
    """

    name = "sampled_products"

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self.codes = [_codes(field) for field in self.features]
        self._levels = any(self.codes)
        self.owners = [0]
        for place, codes in enumerate(self.codes, 1):
            self.owners.extend([place] * (len(codes[0]) if codes else 1))
        self.owners.append(len(self.codes) + 1)
        self.coordinates = self._pairs()
        self.signs = question.mechanism.products
        if self.signs > len(self.coordinates):
            raise StudyError(
                f"{self.where}.products",
                f"is too large for {len(self.coordinates)} products",
                code="study.products_too_large",
            )
        self.patterns = 1 << self.signs
        self.blocks, self.weights = self._blocks(self._weights(question.mechanism.weights))
        self.total, self.ends = 0, []
        for weight in self.weights:
            self.total += weight
            self.ends.append(self.total)
        # 0 where they are not all the same.
        self._weight = self.weights[0] if min(self.weights) == max(self.weights) else 0
        self._reads = ">I" + "Q" * self.signs + "I"
        self._ceiling = (1 << 32) - (1 << 32) % self.total
        self.threshold = truth_threshold(question.mechanism.epsilon, self.patterns)
        whole, others = 1 << CHOICE_BITS, self.patterns - 1
        self.odds = (self.threshold * others, whole - self.threshold)
        if self.odds[0] <= self.odds[1]:
            raise StudyError(
                f"{self.where}.epsilon", "is too small for a sign", code="study.epsilon_too_small_for_sign"
            )
        self.p = Rational(self.threshold, whole)
        self.gain = Rational(self.odds[0] - self.odds[1], whole * others)
        self.privacy = Privacy(log_ratio(self.odds[0], self.odds[1]), Rational(0))
        self.payload_size = bytes_below(self.patterns * len(self.blocks))

    def _pairs(self) -> "list[tuple[int, int]]":
        """All but squares of the constant, of a yes/no and of levels, and products within a field."""
        known = [True] + [field.bounds is None or bool(field.cuts) for field in self.features] + [self.binary]
        owners = self.owners
        pairs = []
        for i in range(len(owners)):
            for j in range(i, len(owners)):
                if owners[i] != owners[j] or (i == j and not known[owners[i]]):
                    pairs.append((i, j))
        return pairs

    def _weights(self, stated: "dict[str, int]") -> "list[int]":
        """How often each product is drawn: entries of one field share what another field has alone."""
        size = [self.owners.count(owner) for owner in range(max(self.owners) + 1)]
        parts = PARTS if max(size) > 1 else 1
        weights = []
        for i, j in self.coordinates:
            share = parts // (size[self.owners[i]] * size[self.owners[j]])
            weights.append(stated[self._kind(i, j)] * share)
        return weights

    def _blocks(self, weights: "list[int]") -> "tuple[list[tuple[int, ...]], list[int]]":
        """The products that are sent together, those of like weights, and what they weigh."""
        count, signs = len(weights), self.signs
        order = [place for _, place in sorted([(weights[place], place) for place in range(count)])]
        if signs == 1:
            order = list(range(count))
        starts = range(0, count, signs)
        blocks = [tuple([order[(start + slot) % count] for slot in range(signs)]) for start in starts]
        return blocks, [sum([weights[place] for place in block]) for block in blocks]

    def _kind(self, i: int, j: int) -> str:
        if i == j:
            return "squares"
        if i == 0:
            return "means"
        return "response" if j == len(self.owners) - 1 else "features"

    def quantise(self, answer: "Any") -> "list[int]":
        """u in units of 2**-20. Raises AnswerError."""
        features, response = self.quantise_fields(answer, UNIT, UNIT)
        vector = [UNIT]
        if not self._levels:
            vector.extend(features)
        else:
            for codes, value in zip(self.codes, features):
                if codes:
                    # From one table for all answers, whatever they are.
                    vector.extend([UNIT * sign for sign in codes[value]])
                else:
                    vector.append(value)
        vector.append(response)
        return vector

    def randomise(self, quantised: "list[int]", random: "Source") -> bytes:
        """Draws the block and rounds its products, then whether their signs are told, or which others are."""
        word, *roundings, coin = struct.unpack(self._reads, read(random, 8 + 8 * self.signs))
        # Drawn again, without bias, whatever the answers are.
        while word >= self._ceiling:
            word, coin = coin, random_bits(CHOICE_BITS, random)
        flips = 1 if self.signs == 1 else 1 + uniform_below(self.patterns - 1, random)
        place = self._drawn(word % self.total)
        told: int = place
        for product, rounding in zip(self.blocks[place], roundings):
            i, j = self.coordinates[product]
            told = 2 * told + (rounding >> SPARE_BITS < SQUARE + quantised[i] * quantised[j])
        told ^= flips * (coin >= self.threshold)
        return told.to_bytes(self.payload_size, "big")

    def _drawn(self, number: int) -> int:
        """The first block whose end is above the number, which no answer has a part in."""
        return number // self._weight if self._weight else first_above(self.ends, number)

    def check(self, payload: bytes) -> None:
        """Raises ReportError unless it names a product."""
        super().check(payload)
        if int.from_bytes(payload, "big") >= self.patterns * len(self.blocks):
            raise self.impossible(f"is not one of {len(self.blocks)} products")


def _codes(field: "Field") -> "list[list[int]]":
    """The entries of each level, −1 and 1; none for a field without levels."""
    if field.cuts:
        levels = range(len(field.cuts) + 1)
        return [[1 if cut < level else -1 for cut in range(len(field.cuts))] for level in levels]
    numbers = range(1, power_of_two(len(field.choices)))
    return [[_character(level, number) for number in numbers] for level in range(len(field.choices))]


def _character(level: int, number: int) -> int:
    """1 where they have an even number of binary ones in common, else −1."""
    sign, both = 1, level & number
    while both:
        sign, both = -sign, both & (both - 1)
    return sign
