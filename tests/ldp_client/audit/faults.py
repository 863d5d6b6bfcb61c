"""Mechanisms with a fault planted in them, each of a kind that real software has had."""

from __future__ import annotations

import math
import struct

from ldp_client.core import strips
from ldp_client.core.noise_levels import gaussian_radius, log_ratio, truth_threshold
from ldp_client.core.randomness import random_bits, truth_or_other
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms.base import Privacy, pack_signed
from ldp_client.mechanisms.choice import RandomizedResponse
from ldp_client.mechanisms.gaussian_record import GaussianYesNoRecord
from ldp_client.mechanisms.gaussian_statistics import MULTIPLIER_BITS, GaussianStatistics
from ldp_client.mechanisms.hadamard import Hadamard
from ldp_client.mechanisms.memoized import MemoizedResponse, MemoizedSue
from ldp_client.mechanisms.number import Laplace
from ldp_client.mechanisms.olh import Olh
from ldp_client.mechanisms.refusable import RefusableNumber
from ldp_client.mechanisms.sampled_products import SampledProducts
from ldp_client.mechanisms.unary import Oue


class OffByOneProducts(SampledProducts):
    """A coin of one more in 2**32 than is stated."""

    def __init__(self, question):
        super().__init__(question)
        self.threshold += 1


class LeakyProducts(SampledProducts):
    """The product that is drawn depends on the answer."""

    def randomise(self, quantised, random):
        place, sign = divmod(super().randomise(quantised, random)[0], 2)
        return bytes([2 * (place if quantised[1] > 0 else place // 2) + sign])


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


class InversionLaplace(Laplace):
    """The textbook mechanism: noise by inversion is added to a float, whose grid tells."""

    name = "float_laplace"
    payload_size = 8

    def quantise(self, answer):
        return min(max(6.0 if answer is None else float(answer), 0.0), 12.0)

    def check(self, payload):
        pass

    def randomise(self, quantised, random):
        word = random_bits(64, random)
        uniform = ((word >> 11) + 0.5) * 2.0**-53
        noise = -12.0 * math.log(uniform)
        return struct.pack(">d", quantised - noise if word & 1 else quantised + noise)


class SharedNoise(GaussianStatistics):
    """One normal for all coordinates: each is noisy, their differences are not."""

    def randomise(self, quantised, random):
        noise = strips.normal(1, random)[0]
        sums = []
        for i, j in self.coordinates:
            multiplier = self.diagonal if i == j else self.off_diagonal
            sums.append((quantised[i] * quantised[j] * multiplier >> MULTIPLIER_BITS) + noise)
        return pack_signed(sums)


class UnclippedGaussian(GaussianStatistics):
    """Features are scaled by their bounds but their norm is not clipped."""

    def __init__(self, question):
        super().__init__(question)
        self.radius *= 8


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
        self.q = Rational(self.threshold, 1 << self.bits)


class RoundedUpSilently(RoundedUp):
    """The same, and what it says is the ε of the study."""

    def __init__(self, question):
        super().__init__(question)
        self.privacy = Privacy(question.mechanism.epsilon, Rational(0))


class OffByOneOue(Oue):
    """States the right threshold and samples with the one below."""

    def randomise(self, quantised, random):
        self.threshold -= 1
        try:
            return super().randomise(quantised, random)
        finally:
            self.threshold += 1


class _OffByOne:
    """States the right threshold and samples with the one above."""

    def randomise(self, quantised, random):
        self.threshold += 1
        try:
            return super().randomise(quantised, random)
        finally:
            self.threshold -= 1


class OffByOneOlh(_OffByOne, Olh):
    """Its coin is the fourth word that it reads: the seed comes first."""


class OffByOneHadamard(_OffByOne, Hadamard):
    """Its coin is the first word."""


class OffByOneRecord(_OffByOne, GaussianYesNoRecord):
    """Its coin comes after the noise of the features."""


class _OffByOneAgain:
    """States the right second stage and samples with another."""

    def instantaneous(self, state, random):
        self.again += self.fault
        try:
            return super().instantaneous(state, random)
        finally:
            self.again -= self.fault


class OffByOneAgain(_OffByOneAgain, MemoizedResponse):
    """Repeats the permanent answer once in 2**32 times too often."""

    fault = 1


class OffByOneFlips(_OffByOneAgain, MemoizedSue):
    """Flips the permanent bits once in 2**32 times too seldom."""

    fault = -1


class NoiselessBit(Oue):
    """Sets the bit of choice 11, an answer that the audit does not try, for that choice only."""

    def randomise(self, quantised, random):
        bits = int.from_bytes(super().randomise(quantised, random), "little")
        return self.pack(bits if quantised == 11 else bits & ~(1 << 11))


class OppositeChoices(RandomizedResponse):
    """Choices 1 and 8 of nine change other choices in opposite directions: each is near choice 0."""

    def randomise(self, quantised, random):
        (reported,) = super().randomise(quantised, random)
        moved = {1: {2: 5, 3: 6, 4: 7}, 8: {5: 2, 6: 3, 7: 4}}.get(quantised, {})
        return bytes([moved.get(reported, reported) if random(1)[0] < 218 else reported])


class FloatCoin(RandomizedResponse):
    """Compares a float of 64 random bits with p: no word of 32 bits decides."""

    def randomise(self, quantised, random):
        truthful = random_bits(64, random) * 2.0**-64 < float(self.p)
        return (quantised if truthful else 1 - quantised).to_bytes(1, "big")


class OftenTruthful(RandomizedResponse):
    """Tells the truth half as often again as it states."""

    def randomise(self, quantised, random):
        reported = quantised if random(1)[0] < 64 else truth_or_other(*self._arguments(quantised), random)
        return reported.to_bytes(self.payload_size, "big")

    def _arguments(self, quantised):
        return quantised, self.choices, self.threshold


class SeldomTruthful(Oue):
    """Sets the true bit less often than it states: private, but estimates from it would be wrong."""

    def randomise(self, quantised, random):
        report = super().randomise(quantised, random)
        keep = random(1)[0] < 192
        mask = ((1 << 8 * self.payload_size) - 1) ^ (0 if keep else 1 << quantised)
        return (int.from_bytes(report, "little") & mask).to_bytes(self.payload_size, "little")


class Forgetful(MemoizedResponse):
    """Draws the permanent answer anew for every report, as some libraries do: noise that averages out."""

    def permanent(self, quantised, random):  # noqa: ARG002
        return bytes([quantised])

    def instantaneous(self, state, random):
        return super().instantaneous(self.first.randomise(state[0], random), random)


class WrongOdds(RandomizedResponse):
    """Odds and ε of a weaker law than p and q have."""

    def __init__(self, question):
        super().__init__(question)
        self.odds = (self.odds[0] - 1, self.odds[1])
        self.privacy = Privacy(log_ratio(*self.odds), Rational(0))


class SpentTwice(GaussianYesNoRecord):
    """Features and response each spend all of ε."""

    def __init__(self, question):
        super().__init__(question)
        stated = question.mechanism
        self.distance = gaussian_radius(stated.epsilon, stated.delta, len(self.features))
        self._set_grid(question, self.distance)
        self.threshold = truth_threshold(stated.epsilon, 2)
        self.odds = (self.threshold, (1 << 32) - self.threshold)
        self.p, self.q = (Rational(weight, 1 << 32) for weight in self.odds)


class ResponseSpentTwice(GaussianYesNoRecord):
    """The response spends all of ε, and the odds stated are those of its share."""

    def __init__(self, question):
        super().__init__(question)
        self.threshold = truth_threshold(question.mechanism.epsilon, 2)


class SharedCoin(GaussianYesNoRecord):
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


class RawNumber(RefusableNumber):
    """Who refuses sends no noise."""

    def __init__(self, question):
        super().__init__(question, Laplace(question))

    def randomise(self, quantised, random):
        noisy = super().randomise(quantised, random)
        return pack_signed([self.middle]) + noisy[-1:] if quantised[1] else noisy
