"""Mechanisms with a fault planted in them, each of a kind that real software has had."""

from __future__ import annotations

import math
import struct

import numpy as np

from ldp_client import answering
from ldp_client.bulk.numbers import draw as bulk_draw
from ldp_client.bulk.numbers import pack_signed as bulk_pack
from ldp_client.core import strips
from ldp_client.core.noise_levels import gaussian_radius, log_ratio, truth_threshold
from ldp_client.core.randomness import random_bits, truth_or_other, uniform_below, urandom
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms.base import Privacy, pack_signed
from ldp_client.mechanisms.choice import RandomizedResponse
from ldp_client.mechanisms.gaussian_record import GaussianYesNoRecord
from ldp_client.mechanisms.gaussian_statistics import MULTIPLIER_BITS, GaussianStatistics
from ldp_client.mechanisms.hadamard import Hadamard
from ldp_client.mechanisms.memoized import MemoizedResponse, MemoizedSue
from ldp_client.mechanisms.number import Gaussian, Laplace
from ldp_client.mechanisms.olh import Olh
from ldp_client.mechanisms.sampled_products import SampledProducts
from ldp_client.mechanisms.unary import Oue, bits_below, read_parts


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


class UnroundedProducts(SampledProducts):
    """Rounding that never rounds up what is far below nothing: a sign that is surely the true one."""

    def randomise(self, quantised, random):
        told = super().randomise(quantised, random)[0]
        place = told >> 1
        i, j = self.coordinates[place]
        return bytes([2 * place]) if quantised[i] * quantised[j] < 0 else bytes([told])


class QuietLaplace(Laplace):
    """Noise of 0.8 times the scale it should have."""

    def randomise(self, quantised, random):
        return pack_signed([quantised + strips.laplace(1, random)[0] * 4 // 5])


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


class NumpyLaplace(Laplace):
    """The textbook mechanism: NumPy's Laplace noise added to a float."""

    name = "float_laplace"
    payload_size = 8

    def quantise(self, answer):
        return min(max(6.0 if answer is None else float(answer), 0.0), 12.0)

    def randomise(self, quantised, random):  # noqa: ARG002
        return struct.pack(">d", quantised + np.random.default_rng().laplace(scale=12.0))

    def check(self, payload):
        pass


class InversionLaplace(NumpyLaplace):
    """The same from sound random bytes, by inversion: only the grid of its floats is at fault."""

    def randomise(self, quantised, random):
        word = random_bits(64, random)
        uniform = ((word >> 11) + 0.5) * 2.0**-53
        noise = -12.0 * math.log(uniform)
        return struct.pack(">d", quantised - noise if word & 1 else quantised + noise)


class RepeatedLaplace(Laplace):
    """Keeps its noise for the next report, as a buffer of random bytes that survives a fork does."""

    def __init__(self, question):
        super().__init__(question)
        self.kept = []

    def randomise(self, quantised, random):
        self.kept = self.kept[1:] or strips.laplace(1, random) * 3
        return pack_signed([quantised + self.kept[0]])


class SharedNoise(GaussianStatistics):
    """One normal for all coordinates: each is noisy, their differences are not."""

    def randomise(self, quantised, random):
        noise = strips.normal(1, random)[0]
        sums = []
        for i, j in self.coordinates:
            multiplier = self.diagonal if i == j else self.off_diagonal
            sums.append((quantised[i] * quantised[j] * multiplier >> MULTIPLIER_BITS) + noise)
        return pack_signed(sums)


class QuietGaussian(GaussianStatistics):
    """Noise of 0.8 times the standard deviation it should have."""

    def randomise(self, quantised, random):
        def disturbed(count, source):
            return [value * 4 // 5 for value in strips.normal(count, source)]

        return _with_noise(self, quantised, disturbed, random)


class UnclippedGaussian(GaussianStatistics):
    """Features are scaled by their bounds but their norm is not clipped."""

    def __init__(self, question):
        super().__init__(question)
        self.radius *= 8


def _with_noise(mechanism, quantised, sampler, random):
    sums = []
    for (i, j), noise in zip(mechanism.coordinates, sampler(len(mechanism.coordinates), random)):
        multiplier = mechanism.diagonal if i == j else mechanism.off_diagonal
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


class OffByOneResponse(RandomizedResponse):
    """Tells the truth once in 2**32 times too often."""

    def randomise(self, quantised, random):
        truthful = random_bits(self.bits, random) <= self.threshold
        other = uniform_below(self.choices - 1, random)
        other += other >= quantised
        return (quantised if truthful else other).to_bytes(self.payload_size, "big")


class OffByOneLastBit(Oue):
    """Draws the last choice's bit with the threshold above the stated one."""

    def randomise(self, quantised, random):
        parts = read_parts(self.bits + 1, self.payload_size, random)
        last = 1 << self.choices - 1
        bits = bits_below(self.threshold, parts) & ~last | bits_below(self.threshold + 1, parts) & last
        own = 1 << quantised
        return self.pack(bits & ~own | int.from_bytes(parts[-1], "little") & own)


class NoiselessBit(Oue):
    """Sets the bit of choice 11, an answer that the audit does not try, for that choice only."""

    def randomise(self, quantised, random):
        bits = int.from_bytes(super().randomise(quantised, random), "little")
        return self.pack(bits if quantised == 11 else bits & ~(1 << 11))


class OffByOneLastChoice(_OffByOne, RandomizedResponse):
    """Draws another coin for the last choice only."""

    def randomise(self, quantised, random):
        draw = super().randomise if quantised == self.choices - 1 else super(_OffByOne, self).randomise
        return draw(quantised, random)


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


class ThriftyResponse(RandomizedResponse):
    """Draws the other choice only when it needs it, and only where there is more than one."""

    def randomise(self, quantised, random):
        other = quantised
        if random_bits(self.bits, random) >= self.threshold:
            other = uniform_below(self.choices - 1, random) if quantised else self.choices - 1
            other += other >= quantised and quantised > 0
        return other.to_bytes(self.payload_size, "big")


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


class RawForOne(RandomizedResponse):
    """Tells the truth always, about one choice that no audit looks at in particular."""

    def randomise(self, quantised, random):
        payload = super().randomise(quantised, random)
        return bytes([5]) if quantised == 5 else payload


class SwappedForOne(Oue):
    """Of 200 labels one has p and q swapped."""

    def randomise(self, quantised, random):
        payload = bytearray(super().randomise(quantised, random))
        place, own = 170 >> 3, 1 << (170 & 7)
        if quantised == 170:
            noisy = super().randomise(0, random)
            payload[place] = (payload[place] & ~own) | (noisy[place] & own)
        return bytes(payload)


class _SometimesAgain:
    """Keeps its noise for the next report, one in 50 times, with real random bytes only."""

    last = 0

    def randomise(self, quantised, random):
        fresh = self.draw(random)
        if random is urandom and random_bits(8, random) < 5:
            fresh = self.last
        self.last = fresh
        return pack_signed([quantised + fresh])


class SometimesAgainLaplace(_SometimesAgain, Laplace):
    def draw(self, random):
        return strips.laplace(1, random)[0]


class SometimesOpposite(SometimesAgainLaplace):
    """The same noise with another sign, of two reports before."""

    kept = (0, 0)

    def randomise(self, quantised, random):
        fresh = self.draw(random)
        if random is urandom and random_bits(8, random) < 5:
            fresh = -self.kept[0]
        self.kept = (self.kept[1], fresh)
        return pack_signed([quantised + fresh])


class SometimesAgainResponse(RandomizedResponse):
    """Keeps its coin for the next report, one in 50 times: it counts them."""

    reports, last = 0, True

    def randomise(self, quantised, random):
        truthful = random_bits(self.bits, random) < self.threshold
        other = uniform_below(self.choices - 1, random)
        self.reports += 1
        self.last = self.last if self.reports % 50 == 0 else truthful
        return (quantised if self.last else other + (other >= quantised)).to_bytes(self.payload_size, "big")


class RarelyRaw(Laplace):
    """No noise at all in one of a thousand reports: a δ that is not stated."""

    def randomise(self, quantised, random):
        rare = random_bits(32, random) < 4_294_967
        payload = super().randomise(quantised, random)
        return pack_signed([quantised]) if rare else payload


class RarelyRawGaussian(Gaussian):
    """The same where a δ is stated, of 1e-6."""

    def randomise(self, quantised, random):
        rare = random_bits(32, random) < 4_294_967
        payload = super().randomise(quantised, random)
        return pack_signed([quantised]) if rare else payload


class RarelyFarAway(RarelyRaw):
    """A number that tells on which half the answer is, far outside, in one of a thousand reports."""

    def randomise(self, quantised, random):
        rare = random_bits(32, random) < 4_294_967
        payload = Laplace.randomise(self, quantised, random)
        far = 1 << 30 if 2 * quantised > self.levels else -1 << 30
        return pack_signed([far]) if rare else payload


class RarelyRawResponse(RandomizedResponse):
    """The truth in one of a thousand reports more than stated: reports hardly show it, its coin does."""

    def randomise(self, quantised, random):
        rare = random_bits(32, random) < 4_294_967
        payload = super().randomise(quantised, random)
        return quantised.to_bytes(self.payload_size, "big") if rare else payload


class WanderingLaplace(Laplace):
    """Puts one answer of fifty elsewhere on the grid, by chance of its own."""

    def quantise(self, answer):
        place = super().quantise(answer)
        return self.levels - place if random_bits(8, urandom) < 5 else place


class LaterRaw(Laplace):
    """Right for its first 1,500 reports, then without noise."""

    reports = 0

    def randomise(self, quantised, random):
        payload = super().randomise(quantised, random)
        self.reports += 1
        return payload if self.reports < 1500 else pack_signed([quantised])


class AfterAnother(Oue):
    """Noise that depends on what the object was asked before."""

    before = 0

    def randomise(self, quantised, random):
        payload = super().randomise(quantised, random)
        same, self.before = self.before == quantised, quantised
        return (1 << quantised).to_bytes(self.payload_size, "little") if same else payload


# Whole reports, in place of answering.perturb_answers: (study, mechanisms, answers, random) → Report.


def shared_noise(study, mechanisms, answers, random=urandom):
    """The second number has the noise of the first."""
    report = answering.report_of(
        study, mechanisms, answering.quantise_answers(study, mechanisms, answers), random
    )
    first, second = mechanisms["hours"], mechanisms["age"]
    noise = first.words(report.payloads["hours"])[0] - first.quantise(answers["hours"])
    report.payloads["age"] = pack_signed([second.quantise(answers["age"]) + noise])
    return report


def rarely_shared_noise(study, mechanisms, answers, random=urandom):
    """The same in one report of fifty, with real random bytes only."""
    report = answering.report_of(
        study, mechanisms, answering.quantise_answers(study, mechanisms, answers), random
    )
    if random is urandom and random_bits(8, random) < 5:
        return shared_noise(study, mechanisms, answers, random)
    return report


def telling_id(study, mechanisms, answers, random=urandom):
    """The id's last digit is odd for a yes."""
    report = answering.report_of(
        study, mechanisms, answering.quantise_answers(study, mechanisms, answers), random
    )
    report.id = report.id[:-1] + ("1" if answers["ever"] else "2")
    return report


def telling_padding(study, mechanisms, answers, random=urandom):
    """A yes is one space longer."""
    report = answering.report_of(
        study, mechanisms, answering.quantise_answers(study, mechanisms, answers), random
    )
    report.padding += bool(answers["ever"])
    return report


def telling_order(study, mechanisms, answers, random=urandom):
    """Questions stand in another order for a yes."""
    report = answering.report_of(
        study, mechanisms, answering.quantise_answers(study, mechanisms, answers), random
    )
    names = sorted(report.payloads, reverse=bool(answers["ever"]))
    report.payloads = {name: report.payloads[name] for name in names}
    return report


# In bulk, in place of a function of ldp_client.bulk: (mechanism, quantised, random) → payloads.


def repeated_rows(mechanism, indices, random):  # noqa: ARG001
    """Noise of one row comes again in the next, one in fifty times."""
    noise = bulk_draw("laplace", len(indices), random)
    noise[1::50] = noise[0::50][: len(noise[1::50])]
    return bulk_pack((np.asarray(indices, np.int64) + noise)[:, None])


def quiet_rows(mechanism, indices, random):  # noqa: ARG001
    """Noise of 0.9 times its scale."""
    return bulk_pack(
        (np.asarray(indices, np.int64) + bulk_draw("laplace", len(indices), random) * 9 // 10)[:, None]
    )


def neighbours_rows(mechanism, indices, random):  # noqa: ARG001
    """Rows are moved by what the row before was answered."""
    rows = np.asarray(indices, np.int64)
    noise = bulk_draw("laplace", len(rows), random) + np.roll(rows, 1) // 64
    return bulk_pack((rows + noise)[:, None])
