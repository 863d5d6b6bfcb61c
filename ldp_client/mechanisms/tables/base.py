"""The base of mechanisms for a holder's table: exact sums of products, one rounding, integer noise.

The count is public, or released with separate noise under add/remove; the sums are private under
replace-one and, without averaging, under add/remove as well (sensitivities.py), so ε and δ add up.
"""

import struct
from fractions import Fraction
from itertools import combinations_with_replacement
from math import floor, isqrt
from typing import Any

from ldp_client.core.noise_levels import NOISE_BITS, gaussian_radius, laplace_levels
from ldp_client.core.quantise import UNIT, UNIT_BITS
from ldp_client.core.randomness import Source
from ldp_client.core.strips import NOISE_REACH, laplace, normal
from ldp_client.documents.errors import AnswerError
from ldp_client.documents.question import Question
from ldp_client.documents.rules import refuse_study
from ldp_client.mechanisms.base import Mechanism, Privacy
from ldp_client.mechanisms.tables.powers import Gram, PowerSums, products_of
from ldp_client.mechanisms.tables.rows import records_of

MULTIPLIER_BITS = 120
WORD_BYTES = 8
LARGEST_WORD = (1 << 63) - 1


class TableSums:
    """count: the records that were summed. sums: of each released coordinate, in units of UNIT⁻² (× k).

    The sums of products of k features follow the sums of pairs, in units of UNIT⁻ᵏ.
    """

    def __init__(self, count: int, sums: list[int]) -> None:
        self.count = count
        self.sums = sums


class TableMechanism(Mechanism):
    """A count and entries of Σ vvᵀ, v = (1, x, y) in scaled units, over a table of many records.

    law: "gaussian" or "laplace", of all noise. coordinates: the pairs (i, j), i ≤ j, that are released;
    index 0 is the constant, then features, then the response. average: k; then rows v are sums of k
    records over √k, so that the constant is √k and (0, j) still a sum over records. intercept: whether
    there are pairs with i = 0. radius: the norm that features are clipped to, in units of 1/UNIT.
    multipliers: what exact sums are multiplied by, in units of 2**−MULTIPLIER_BITS; the noise is 2**20
    grid units wide. count_step: grid units of one record where the count has noise, else 0. products: of
    three and four features that are released too (powers.py), if any. A payload has 8 signed bytes for the
    count, for each coordinate and each product.

    A subclass sets name, law and has_squares (whether Σy² is released), and implements `_multipliers`.
    """

    law = ""
    has_squares = True
    binary = False

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        assert question.norm is not None
        assert question.response is not None
        stated = question.mechanism
        self.features, self.response = question.features, question.response
        self.intercept, self.average = stated.intercept, stated.average
        longest = isqrt(len(self.features) * UNIT * UNIT - 1) + 1
        self.radius = min(floor(question.norm * UNIT), longest)
        last = len(self.features) + 1
        pairs = combinations_with_replacement(range(0 if self.intercept else 1, last + 1), 2)
        known = [(0, 0)] if self.has_squares else [(0, 0), (last, last)]
        self.coordinates = [pair for pair in pairs if pair not in known]
        self.products = products_of(len(self.features), self.intercept) if stated.fourth_moments else []
        self.payload_size = WORD_BYTES * (1 + len(self.coordinates) + len(self.products))
        # The integers that follow from ε and δ, and the privacy that follows from them.
        self.count_step, spent = 0, Privacy(Fraction(0))
        budget, share = Privacy(stated.epsilon, stated.delta), stated.count_share
        if share is not None:
            self.count_step, spent = self._distance(part(budget, share), 1)
            budget = part(budget, 1 - share)
            is_small = self.count_step < 1
            problem = "leaves too little epsilon or delta for a count"
            refuse_study(is_small, f"{self.where}.count_share", problem, "study.count_share_too_large")
        rest = self._set_noise_of_sums(budget)
        self.privacy = Privacy(spent.epsilon + rest.epsilon, spent.delta + rest.delta)

    def _set_noise_of_sums(self, budget: Privacy) -> Privacy:
        """The multipliers of all sums, and the privacy that follows from them."""
        size = len(self.coordinates)
        distance, spent = self._distance(budget, size)
        # Rounding to nearest moves each coordinate of a difference by at most 1.
        rounding = isqrt(size - 1) + 1 if self.law == "gaussian" else size
        self.multipliers = self._multipliers(self._room(distance, rounding))
        return spent

    def _room(self, distance: int, rounding: int) -> int:
        problem = "epsilon or delta is too small for a table with so many columns"
        refuse_study(distance <= rounding, self.where, problem, "study.epsilon_too_small_for_table")
        return distance - rounding

    def _distance(self, budget: Privacy, size: int) -> tuple[int, Privacy]:
        """Return how far apart two vectors of that size may be, in L2 or L1, and the noise's privacy then."""
        if self.law == "gaussian":
            return gaussian_radius(budget.epsilon, budget.delta, size), budget
        levels = laplace_levels(budget.epsilon)
        return levels, Privacy(Fraction(levels, 1 << NOISE_BITS))

    def _multipliers(self, room: int) -> list[int]:
        """For each coordinate, so that any two neighbours' statistics are at most `room` apart."""
        raise NotImplementedError(self.name)

    def _noise(self, count: int, random: Source) -> list[int]:
        return normal(count, random) if self.law == "gaussian" else laplace(count, random)

    def quantise(self, answer: Any) -> TableSums:
        """The exact sums over a table's records, clipped; one pass, bounded memory. Raises AnswerError.

        answer: {field: sequence of numbers}, or an object whose `chunks()` yields such parts in order.
        """
        gram = Gram(len(self.features) + 2, self.average)
        powers = PowerSums(len(self.features)) if self.products else None
        for records in records_of(self.field, [*self.features, self.response], self.radius, answer):
            gram.add(records)
            if powers:
                powers.add(records)
        if gram.groups == 0:
            raise AnswerError.say("core.table_groups", self.field, average=self.average)
        sums = [gram.total[i][j] for i, j in self.coordinates]
        sums += [powers.total(product) for product in self.products] if powers else []
        return TableSums(gram.groups * self.average, sums)

    def randomise(self, quantised: TableSums, random: Source) -> bytes:
        """Return the count, with any noise, and the rounded sums with noise."""
        noise = self._noise(len(self.multipliers) + (self.count_step > 0), random)
        half = 1 << (MULTIPLIER_BITS - 1)
        words = [quantised.count]
        if self.count_step:
            words = [quantised.count * self.count_step + noise.pop()]
        for total, multiplier, disturbance in zip(quantised.sums, self.multipliers, noise):
            words.append(((total * multiplier + half) >> MULTIPLIER_BITS) + disturbance)
        words = [min(max(word, -LARGEST_WORD), LARGEST_WORD) for word in words]
        return struct.pack(f">{len(words)}q", *words)

    def words(self, payload: bytes) -> list[int]:
        """Return the integers of the count, the coordinates and the products, with their noise."""
        return self._all_words(payload)[self.count_step == 0 :]

    def _all_words(self, payload: bytes) -> list[int]:
        return list(struct.unpack(f">{len(payload) // WORD_BYTES}q", payload))

    def entries(self, payload: bytes) -> tuple[int, list[float]]:
        """(the count as released, the noisy entries of Σ vvᵀ in scaled units in the order of `coordinates`).

        A count with noise may be below 1.
        """
        count, *values = self._all_words(payload)
        if self.count_step:
            count = (2 * count + self.count_step) // (2 * self.count_step)
        return count, [value / grid for value, grid in zip(values, self._grids[: len(self.coordinates)])]

    def power_sums(self, payload: bytes) -> list[float]:
        """The noisy sums of products of features in scaled units, in the order of `products`."""
        size = len(self.coordinates)
        return [value / grid for value, grid in zip(self._all_words(payload)[1 + size :], self._grids[size:])]

    @property
    def _grids(self) -> list[float]:
        """Integers for one scaled unit of each coordinate, then of each product."""
        powers = [2] * len(self.coordinates) + [len(product) for product in self.products]
        return [
            multiplier * self.average * 2.0 ** (power * UNIT_BITS - MULTIPLIER_BITS)
            for power, multiplier in zip(powers, self.multipliers)
        ]

    @property
    def noise_scale(self) -> list[float]:
        """Each coordinate's noise, sd of Gaussian and scale b of Laplace noise, in scaled units."""
        return [(1 << NOISE_BITS) / grid for grid in self._grids[: len(self.coordinates)]]

    @property
    def power_noise_scale(self) -> list[float]:
        """`noise_scale` of each product's sum."""
        return [(1 << NOISE_BITS) / grid for grid in self._grids[len(self.coordinates) :]]

    @property
    def count_noise_sd(self) -> float:
        """The standard deviation of the count's noise, in records; 0 where the count is public."""
        if not self.count_step:
            return 0.0
        width = (1 << NOISE_BITS) / self.count_step
        return width if self.law == "gaussian" else 2**0.5 * width

    def check(self, payload: bytes) -> None:
        """Raises ReportError for a count below 1 or sums that no so many records and noise could have."""
        super().check(payload)
        count, *values = self._all_words(payload)
        if self.count_step:
            return
        if count < 1 or count % self.average:
            raise self.impossible("has a count of records that cannot be")
        if self.law == "gaussian":
            largest = [count * bound + 1 + NOISE_REACH for bound in self._largest()]
            if any(abs(value) > bound for value, bound in zip(values, largest)):
                raise self.impossible("has a number out of range")

    def _largest(self) -> list[int]:
        """The most that one record can add to each coordinate, in grid units; rounded up."""
        side = min(self.radius, UNIT)
        fields = [UNIT, *[side] * len(self.features), UNIT]
        products = [fields[i] * fields[j] * self.average for i, j in self.coordinates]
        return [(p * m >> MULTIPLIER_BITS) + 1 for p, m in zip(products, self.multipliers)]


def part(budget: Privacy, share: Fraction) -> Privacy:
    return Privacy(budget.epsilon * share, budget.delta * share)
