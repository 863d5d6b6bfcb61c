"""Send several signs of one record that are right one by one but not together: the audit says so.

Defence: The repository's tests: they hold each product of a report's signs to its own law, which is all of
the law.
"""

import struct

import numpy as np
import pytest

from ldp_client.core.noise_levels import truth_threshold
from ldp_client.core.randomness import NotForRealAnswers, read
from ldp_client.mechanisms.sampled_products import SPARE_BITS, SQUARE, SampledProducts
from schemas import Rational, Study
from tests import studies
from tests.privacy.checks import products

STATED = {"name": "sampled_products", "epsilon": "2", "products": 2}
QUESTION = Study(studies.document({**studies.PRODUCTS, "mechanism": STATED})).questions[0]
RECORD = {"age": 36, "married": True, "rate": 3.9}
REPORTS = 4000
LAW = "signs follow their law"


class OneRounding(SampledProducts):
    """Both products are rounded by the same bits, so that the signs also say which of them is larger."""

    def randomise(self, quantised, random):
        word, rounding, _, coin, other = struct.unpack(">IQQII", read(random, 28))
        place = self._drawn(word % self.total)
        return bytes([4 * place + self._signs(place, quantised, rounding) ^ self._flips(coin, other)])

    def _signs(self, place, quantised, rounding):
        pairs = [self.coordinates[product] for product in self.blocks[place]]
        one, other = (rounding >> SPARE_BITS < SQUARE + quantised[i] * quantised[j] for i, j in pairs)
        return 2 * one + other

    def _flips(self, coin, other):
        return (1 + other % 3) * (coin >= self.threshold)


class ACoinEach(OneRounding):
    """Each sign has a coin of its own with all of ε: together they cost twice as much."""

    def _flips(self, coin, other):
        alone = truth_threshold(Rational.parse("2"), 2)
        return 2 * (coin >= alone) + (other >= alone)


class OneSignFlips(OneRounding):
    """A lie is always about the first sign, and the second one true."""

    def _flips(self, coin, other):
        del other
        return 2 * (coin >= self.threshold)


class Rare(SampledProducts):
    """Never the last block, but the one before it."""

    def randomise(self, quantised, random):
        told = super().randomise(quantised, random)[0]
        return bytes([told - 4 if told // 4 == len(self.blocks) - 1 else told])


def reports(kind):
    mechanism = kind(QUESTION)
    random = np.random.default_rng(7).bytes
    quantised = mechanism.quantise(RECORD)
    source = NotForRealAnswers(random)
    return mechanism, [quantised] * REPORTS, [mechanism.randomise(quantised, source) for _ in range(REPORTS)]


def failed(kind):
    return {check.name for check in products.product_checks(*reports(kind)) if not check.passed}


@pytest.mark.parametrize("kind", [OneRounding, ACoinEach, OneSignFlips])
def test_correlated_signs_are_detected(kind):
    assert LAW in failed(kind)


def test_missing_product_block_is_detected():
    assert "every product comes as often as belongs" in failed(Rare)


def test_real_sampled_products_pass_audit():
    assert failed(SampledProducts) == set()


def test_single_signs_of_shared_rounding_look_right():
    mechanism, records, payloads = reports(OneRounding)
    worst = []
    for some in (1, 2, 3):
        numbers = [divmod(payload[0], 4) for payload in payloads]
        told = [products.sign_told(mechanism, records[0], number, some) for number in numbers]
        worst.append(max(map(products._agreement, products._groups(mechanism, records, told))))
    assert max(worst[:2]) < products.LIMIT < worst[2]
