"""Gaussian noise on one record's second moments, for linear and logistic regression.

METHODS 1.3 with a constant: v = (κ, x, c·y), κ = c = R/√2 where R is the norm bound and |y| ≤ 1
after scaling, so ‖v‖² ≤ 2R² and svec(vvᵀ) has L2 sensitivity √2·2R², reached by records with
orthogonal v. κ²  and, for a yes/no response y in {−1, 1}, c²y² are known and not released.
"""

from itertools import combinations_with_replacement
from math import floor, isqrt
from typing import Any

from ldp_client.core.noise_levels import NOISE_BITS, gaussian_radius, outer_product_sensitivity
from ldp_client.core.quantise import UNIT, UNIT_BITS, clip_norm
from ldp_client.core.randomness import Source
from ldp_client.core.strips import NOISE_REACH, normal
from ldp_client.documents.question import Question
from ldp_client.documents.rules import refuse_study
from ldp_client.mechanisms.base import Privacy, pack_signed, register, unpack_signed
from ldp_client.mechanisms.record import RecordMechanism

MULTIPLIER_BITS = 60


@register
class GaussianStatistics(RecordMechanism):
    """The upper triangle of vvᵀ in integers, plus round(2**20 × N(0, 1)) on each.

    coordinates: the pairs (i, j), i ≤ j, of v = (constant, features…, response) that are released.
    distance: R, the largest L2 distance of two records' integers that the noise hides.
    units: weight of the constant and of a response of 1, in units of 2**-20 (features have weight 1).
    A payload has 4 signed bytes for each coordinate. With v in scaled units, a released integer is
    v_i v_j × grid on the diagonal and √2 × v_i v_j × grid off the diagonal.
    """

    name = "gaussian_statistics"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        assert question.norm is not None
        self.radius = floor(question.norm * (1 << UNIT_BITS))
        self.weight = isqrt(self.radius * self.radius // 2)
        self.units = (UNIT, self.weight)
        last = len(self.features) + 1
        known = [(0, 0), (last, last)] if self.binary else [(0, 0)]
        pairs = combinations_with_replacement(range(last + 1), 2)
        self.coordinates = [pair for pair in pairs if pair not in known]
        self.payload_size = 4 * len(self.coordinates)
        self.distance = self._hidden_distance(question)
        # Any two records' integer statistics are at most `distance` apart in L2. Rounding to nearest moves
        # each coordinate of a difference by at most 1: √D in L2.
        room = self.distance - isqrt(len(self.coordinates) - 1) - 1
        diameter = outer_product_sensitivity(self.radius * self.radius + 2 * self.weight * self.weight)
        problem = "epsilon or delta is too small for a record of this size"
        refuse_study(room < 1, self.where, problem, "study.epsilon_too_small_for_statistics")
        self.diagonal = (room << MULTIPLIER_BITS) // diameter
        self.off_diagonal = isqrt(2 * self.diagonal * self.diagonal)
        self._terms = [(i, j, self.diagonal if i == j else self.off_diagonal) for i, j in self.coordinates]
        largest = self.off_diagonal * self.radius * self.radius
        self.largest = (largest >> MULTIPLIER_BITS) + 1 + NOISE_REACH
        self.privacy = Privacy(question.mechanism.epsilon, question.mechanism.delta)

    def _hidden_distance(self, question: Question) -> int:
        stated = question.mechanism
        return gaussian_radius(stated.epsilon, stated.delta, len(self.coordinates))

    @property
    def grid(self) -> float:
        """Integers for one scaled unit of v_i²: divide a sum by it to get Σ v_i² in scaled units."""
        return self.diagonal * 2.0 ** (2 * UNIT_BITS - MULTIPLIER_BITS)

    @property
    def noise_sd(self) -> float:
        """The noise's standard deviation on each svec coordinate, in scaled units of vvᵀ."""
        return (1 << NOISE_BITS) / self.grid

    @property
    def scaled_weight(self) -> float:
        """κ = c in scaled units."""
        return self.weight / UNIT

    def quantise(self, answer: Any) -> list[int]:
        """Return v in units of 2**-20, with features clipped to the norm. Raises AnswerError."""
        scaled, response = self.quantise_fields(answer)
        return [self.weight, *clip_norm(scaled, self.radius), response]

    def randomise(self, quantised: list[int], random: Source) -> bytes:
        """Add one normal to each coordinate of the statistic."""
        return pack_signed(self.noisy_sums(quantised, random))

    def noisy_sums(self, quantised: list[int], random: Source) -> list[int]:
        """Return the statistic's integers with one normal added to each."""
        noise = normal(len(self.coordinates), random)
        half = 1 << (MULTIPLIER_BITS - 1)
        return [
            ((quantised[i] * quantised[j] * multiplier + half) >> MULTIPLIER_BITS) + disturbance
            for (i, j, multiplier), disturbance in zip(self._terms, noise)
        ]

    def check(self, payload: bytes) -> None:
        """Raise ReportError if a coordinate exceeds the largest sum of statistic and noise."""
        super().check(payload)
        if any(abs(value) > self.largest for value in unpack_signed(payload)):
            raise self.impossible("has a number out of range")
