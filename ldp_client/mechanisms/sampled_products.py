"""One or several products of two entries of a record, as noisy bits (Duchi, Jordan & Wainwright 2018).

u = (1, features…, response), each entry scaled to −1…1 by its own bounds; a yes/no is −1 or 1. A number cut
into bins has an entry for each cut, which is 1 above the cut. A choice has an entry for each character of
its binary index (Cormode, Kulkarni & Srivastava 2018). No product of two entries of such a field is sent.
The product to send is drawn independently of the answers. Its value is rounded to −1 or 1 without bias, and
randomized response perturbs that sign. If m is a product's mean over all people, the share of positive
reports on it is exactly ½(1 + gain · m), whatever law the entries have.

If a report has k products, all products are grouped in blocks of k, and one block is drawn. Each product of
the block is rounded independently, and 2^k-ary randomized response perturbs the pattern of the k signs. Each
sign, and each product of signs of one report, is positive with a share of ½(1 + gain · m), m its mean.
"""

import struct
from bisect import bisect_right
from itertools import accumulate, combinations_with_replacement
from typing import Any

from ldp_client.core.integers import bytes_below
from ldp_client.core.noise_levels import CHOICE_BITS, log_ratio
from ldp_client.core.quantise import UNIT, UNIT_BITS
from ldp_client.core.randomness import Source, random_bits, read, uniform_below
from ldp_client.documents.question import Field, Question
from ldp_client.documents.rules import power_of_two, refuse_study
from ldp_client.mechanisms.base import Privacy, register
from ldp_client.mechanisms.record import RecordMechanism

# The weight that all products of two fields with several entries share, rounded down: together they are
# drawn as often as the single product of two other fields, or up to 7.2 % less often.
PARTS = 2520
# A product of two entries is a multiple of 2**-40: 41 of 64 random bits round it exactly.
SQUARE = UNIT * UNIT
SPARE_BITS = 64 - (2 * UNIT_BITS + 1)


def _codes(field: Field) -> list[list[int]]:
    """Return the entries of each level, −1 and 1; empty for a field without levels."""
    if field.cuts:
        levels = range(len(field.cuts) + 1)
        return [[1 if cut < level else -1 for cut in range(len(field.cuts))] for level in levels]
    # A character is 1 if level and number have an even number of binary ones in common, else −1.
    numbers = range(1, power_of_two(len(field.choices)))
    levels = range(len(field.choices))
    return [[1 - 2 * ((level & number).bit_count() & 1) for number in numbers] for level in levels]


@register
class SampledProducts(RecordMechanism):
    """Report a block of products and their signs, which are true with probability threshold / 2**32.

    codes: for each feature with levels, the entries (−1 and 1) of each level.
    owners: each entry's field, from 0 for the constant to the response.
    coordinates: the pairs (i, j), i ≤ j, of entries whose products are sent. Products that are always 1 or
    known from other products are left out.
    signs: k, the number of products in a report. patterns: 2**k. blocks: the products that are sent together,
    as indices in `coordinates`. If their number is not a multiple of k, the last block repeats some of the
    first products. If k is 1, blocks are the products in order.
    weights: the weight of each block, the sum of its products' weights; a block is drawn with probability
    weight / `total`. ends: the cumulative weights.
    gain: the shares of a product's positive and negative reports differ by gain × its mean.
    A payload is 2**k × the block's index + the pattern, big-endian. The highest bit is the first product's, 1
    if the sign is positive.
    """

    name = "sampled_products"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.codes = [_codes(field) for field in self.features]
        self._levels = any(self.codes)
        self.owners = [0]
        for place, codes in enumerate(self.codes, 1):
            self.owners.extend([place] * (len(codes[0]) if codes else 1))
        self.owners.append(len(self.codes) + 1)
        # No squares of the constant, of a yes/no or of levels, and no pairs within a field.
        known = [True, *[field.bounds is None or bool(field.cuts) for field in self.features], self.binary]
        self.coordinates = [
            (i, j)
            for i, j in combinations_with_replacement(range(len(self.owners)), 2)
            if self.owners[i] != self.owners[j] or (i == j and not known[self.owners[i]])
        ]
        self.signs = question.mechanism.products
        problem = f"is too large for {len(self.coordinates)} products"
        is_large = self.signs > len(self.coordinates)
        refuse_study(is_large, f"{self.where}.products", problem, "study.products_too_large")
        self.patterns = 1 << self.signs
        self.blocks, self.weights = self._blocks(self._weights(question.mechanism.weights))
        self.ends = list(accumulate(self.weights))
        self.total = self.ends[-1]
        # 0 if the weights differ.
        self._weight = self.weights[0] if min(self.weights) == max(self.weights) else 0
        self._reads = ">I" + "Q" * self.signs + "I"
        self._ceiling = (1 << 32) - (1 << 32) % self.total
        is_small = not self._tell_truth(question.mechanism.epsilon, self.patterns)
        problem = "is too small for a sign"
        refuse_study(is_small, f"{self.where}.epsilon", problem, "study.epsilon_too_small_for_sign")
        self.gain = self.p - self.q
        self.privacy = Privacy(log_ratio(self.odds[0], self.odds[1]))
        self.payload_size = bytes_below(self.patterns * len(self.blocks))

    def _weights(self, stated: dict[str, int]) -> list[int]:
        """Return each product's weight: the entries of a field share the weight of a field with one entry."""
        size = [self.owners.count(owner) for owner in range(max(self.owners) + 1)]
        parts = PARTS if max(size) > 1 else 1
        weights = []
        for i, j in self.coordinates:
            share = parts // (size[self.owners[i]] * size[self.owners[j]])
            weights.append(stated[self._kind(i, j)] * share)
        return weights

    def _blocks(self, weights: list[int]) -> tuple[list[tuple[int, ...]], list[int]]:
        """Group products of similar weights into blocks. Return the blocks and their weights."""
        count, signs = len(weights), self.signs
        order = range(count) if signs == 1 else sorted(range(count), key=weights.__getitem__)
        starts = range(0, count, signs)
        blocks = [tuple(order[(start + slot) % count] for slot in range(signs)) for start in starts]
        return blocks, [sum(weights[place] for place in block) for block in blocks]

    def _kind(self, i: int, j: int) -> str:
        if i == j:
            return "squares"
        if i == 0:
            return "means"
        return "response" if j == len(self.owners) - 1 else "features"

    def quantise(self, answer: Any) -> list[int]:
        """Return u in units of 2**-20. Raises AnswerError."""
        features, response = self.quantise_fields(answer)
        if not self._levels:
            return [UNIT, *features, response]
        vector = [UNIT]
        for codes, value in zip(self.codes, features):
            # One table lookup, whatever the answer is.
            vector += [UNIT * sign for sign in codes[value]] if codes else [value]
        return [*vector, response]

    def randomise(self, quantised: list[int], random: Source) -> bytes:
        """Draw the block, round its products, then draw whether to send their signs or another pattern."""
        word, *roundings, coin = struct.unpack(self._reads, read(random, 8 + 8 * self.signs))
        # Rejection sampling, which does not depend on the answers.
        while word >= self._ceiling:
            word, coin = coin, random_bits(CHOICE_BITS, random)
        flips = 1 if self.signs == 1 else 1 + uniform_below(self.patterns - 1, random)
        # The first block whose end is above the number.
        number = word % self.total
        place = number // self._weight if self._weight else bisect_right(self.ends, number)
        told: int = place
        for product, rounding in zip(self.blocks[place], roundings):
            i, j = self.coordinates[product]
            told = 2 * told + (rounding >> SPARE_BITS < SQUARE + quantised[i] * quantised[j])
        told ^= flips * (coin >= self.threshold)
        return told.to_bytes(self.payload_size, "big")

    def check(self, payload: bytes) -> None:
        """Raise ReportError unless the payload names a block."""
        super().check(payload)
        if int.from_bytes(payload, "big") >= self.patterns * len(self.blocks):
            raise self.impossible(f"is not among {len(self.blocks)} products")
