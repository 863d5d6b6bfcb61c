"""Mechanisms with a fault planted in them, each of a kind that real software has had."""

import struct
from fractions import Fraction

from ldp_client.core import strips
from ldp_client.core.noise_levels import gaussian_radius, log_ratio, truth_threshold
from ldp_client.mechanisms.base import Privacy, pack_signed
from ldp_client.mechanisms.choice import RandomizedResponse
from ldp_client.mechanisms.gaussian_record import GaussianRecord
from ldp_client.mechanisms.gaussian_statistics import MULTIPLIER_BITS, GaussianStatistics
from ldp_client.mechanisms.number import Laplace, RefusableNumber
from ldp_client.mechanisms.sampled_products import SampledProducts
from ldp_client.mechanisms.unary import Oue


class CoarseLaplace(Laplace):
    """Noise on a grid four times coarser than the answers'."""

    def randomise(self, quantised, random):
        return pack_signed([quantised + strips.laplace(1, random)[0] // 4 * 4])


class UnclippedLaplace(Laplace):
    """Answers beyond the bounds stay there."""

    def quantise(self, answer):
        if answer is None:
            return self.levels // 2
        low, high = float(self.bounds[0]), float(self.bounds[1])
        return round((answer - low) / (high - low) * self.levels)


class SharedNoise(GaussianStatistics):
    """One normal for all coordinates: each is noisy, their differences are not."""

    def randomise(self, quantised, random):
        noise = strips.normal(1, random)[0]
        sums = []
        for i, j in self.coordinates:
            multiplier = self.diagonal if i == j else self.off_diagonal
            sums.append((quantised[i] * quantised[j] * multiplier >> MULTIPLIER_BITS) + noise)
        return pack_signed(sums)


class RepeatedBytes(Oue):
    """Every byte has the same noise (Cobalt): each bit by itself is right. For whole bytes of choices."""

    def randomise(self, quantised, random):
        noise = 0
        for place, fresh in enumerate(random(self.bits)):
            noise = noise | fresh if self.threshold >> place & 1 else noise & fresh
        report = bytearray([noise] * self.payload_size)
        own = 1 << quantised % 8
        report[quantised // 8] = (noise & ~own) | (random(1)[0] & own)
        return bytes(report)


class RoundedUp(Oue):
    """The threshold is rounded down, so ε is 1e-10 too large, and said so."""

    def __init__(self, question):
        super().__init__(question)
        self.threshold -= 1
        self._state_odds((1 << self.bits) - self.threshold, self.threshold)
        self.q = Fraction(self.threshold, 1 << self.bits)


class RoundedUpSilently(RoundedUp):
    """The same, and what it says is the ε of the study."""

    def __init__(self, question):
        super().__init__(question)
        self.privacy = Privacy(question.mechanism.epsilon)


class OppositeChoices(RandomizedResponse):
    """Choices 1 and 8 of nine change other choices in opposite directions: each is near choice 0."""

    def randomise(self, quantised, random):
        (reported,) = super().randomise(quantised, random)
        moved = {1: {2: 5, 3: 6, 4: 7}, 8: {5: 2, 6: 3, 7: 4}}.get(quantised, {})
        return bytes([moved.get(reported, reported) if random(1)[0] < 218 else reported])


class SeldomTruthful(Oue):
    """Sets the true bit less often than it states: private, but estimates from it would be wrong."""

    def randomise(self, quantised, random):
        report = super().randomise(quantised, random)
        keep = random(1)[0] < 192
        mask = ((1 << 8 * self.payload_size) - 1) ^ (0 if keep else 1 << quantised)
        return (int.from_bytes(report, "little") & mask).to_bytes(self.payload_size, "little")


class WrongOdds(RandomizedResponse):
    """Odds and ε of a weaker law than p and q have."""

    def __init__(self, question):
        super().__init__(question)
        self.odds = (self.odds[0] - 1, self.odds[1])
        self.privacy = Privacy(log_ratio(*self.odds))


class SpentTwice(GaussianRecord):
    """Features and response each spend all of ε."""

    def __init__(self, question):
        super().__init__(question)
        stated = question.mechanism
        self.distance = gaussian_radius(stated.epsilon, stated.delta, len(self.features))
        self._set_grid(question, self.distance)
        self.threshold = truth_threshold(stated.epsilon, 2)
        self.odds = (self.threshold, (1 << 32) - self.threshold)
        self.p, self.q = (Fraction(weight, 1 << 32) for weight in self.odds)


class SharedCoin(GaussianRecord):
    """The response's coin is the sign of the first feature's noise: each by itself is private."""

    def randomise(self, quantised, random):
        noisy = super().randomise(quantised, random)
        noise = struct.unpack_from(">i", noise_bytes := noisy[:4])[0] - quantised[0]
        return noise_bytes + noisy[4:-1] + bytes([quantised[-1] ^ (noise < 0)])


class RawRefusal(RandomizedResponse):
    """Who refuses is reported as one who does."""

    def randomise(self, quantised, random):
        noisy = super().randomise(quantised, random)
        return noisy if quantised < self.choices - 1 else quantised.to_bytes(self.payload_size, "big")


class LeakyProducts(SampledProducts):
    """The product that is drawn depends on the answer."""

    def randomise(self, quantised, random):
        place, sign = divmod(super().randomise(quantised, random)[0], 2)
        return bytes([2 * (place if quantised[1] > 0 else place // 2) + sign])


class RawNumber(RefusableNumber):
    """Who refuses sends no noise."""

    def __init__(self, question):
        super().__init__(question, Laplace(question))

    def randomise(self, quantised, random):
        noisy = super().randomise(quantised, random)
        return pack_signed([self.middle]) + noisy[-1:] if quantised[1] else noisy
