"""The exact law of a choice mechanism's sampler, by running it on every stream of random bytes that matters.

A mechanism reads random bytes a few times. For each read this lists the values that lead to different
reports, with their exact probabilities; every combination of them is fed to the real sampler.
"""

import itertools
import struct
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from io import BytesIO
from math import prod
from types import SimpleNamespace

import pytest

from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.mechanisms import olh
from ldp_client.mechanisms.sampled_products import SPARE_BITS, SQUARE

Read = list[tuple[bytes, Fraction]]
Law = Mapping[bytes, Fraction]
WHOLE = 1 << 32
CHOICES = ("randomized_response", "oue", "sue", "subset_selection", "olh", "hadamard")
# The hash functions below this prime are few enough to try all of them.
PRIME = 5
# The records whose sampled products tell most.
HIGH = {"age": 1e9, "married": "yes", "rate": 5}
RECORDS = [
    HIGH,
    {"age": -1e9, "married": "no", "rate": 1},
    {"age": 42, "married": False, "rate": 1},
    {"age": 33.1, "married": True, "rate": 2.123},
]


def coin(threshold):
    """The largest word below the threshold, and the threshold itself: a coin turns exactly between them."""
    below = Fraction(threshold, WHOLE)
    above = min(threshold, WHOLE - 1)
    return [((threshold - 1).to_bytes(4, "big"), below), (above.to_bytes(4, "big"), 1 - below)]


def uniform(count, step=1):
    """Big-endian words that stand for 0..count−1: each is as likely as any other."""
    return [((step * value).to_bytes(4, "big"), Fraction(1, count)) for value in range(count)]


def biased(m):
    """32 strings of bits, which spell the fractions just below and at the threshold, complemented."""
    chances, reads = coin(m.threshold), []
    for ones in itertools.product((1, 0), repeat=m.choices):
        numbers = [m.threshold - bit for bit in ones]
        digits = [
            sum((1 - (number >> place & 1)) << j for j, number in enumerate(numbers)) for place in range(32)
        ]
        reads.append((bytes(digits), prod(chances[1 - bit][1] for bit in ones)))
    return reads


def fair(m):
    """A byte of which each choice has a bit."""
    return [(bytes([byte]), Fraction(1, 1 << m.choices)) for byte in range(1 << m.choices)]


def words(m):
    """The words of a shuffle that stops early."""
    counts = [m.choices - 1 - place for place in range(m.size)]
    return [
        (struct.pack(f"<{m.size}I", *chosen), Fraction(1, prod(counts)))
        for chosen in itertools.product(*map(range, counts))
    ]


def joined(first, second):
    """Two independent values that are read at once."""
    return [(start + end, chance * other) for start, chance in first for end, other in second]


READS = {
    "randomized_response": lambda m: [coin(m.threshold), uniform(m.choices - 1)],
    "oue": lambda m: [joined(biased(m), fair(m))],
    "sue": lambda m: [biased(m)],
    "subset_selection": lambda m: [coin(m.threshold), words(m)],
    # Needs `few_hashes`.
    "olh": lambda m, prime=PRIME: [uniform(prime, 2)] * 3 + [coin(m.threshold), uniform(m.hashes - 1)],
    "hadamard": lambda m: [coin(m.threshold), uniform(2 * m.blocks - 1), uniform(m.width)],
}


def law_of(m, index, reads):
    """{payload: exact probability} for one answer."""
    law = defaultdict(Fraction)
    for combination in itertools.product(*reads):
        stream = BytesIO(b"".join(chunk for chunk, _ in combination))
        payload = m.randomise(index, NotForRealAnswers(stream.read))
        assert not stream.read()
        law[payload] += prod(chance for _, chance in combination)
    return law


def rounding(product):
    """Eight bytes that round a product up, and eight that round it down."""
    up = Fraction(SQUARE + product, 2 * SQUARE)
    last = (SQUARE + product) << SPARE_BITS
    ends = [(max(last - 1, 0), up), (min(last, (1 << 64) - 1), 1 - up)]
    return [(value.to_bytes(8, "big"), chance) for value, chance in ends]


def products_law(m, quantised):
    """{payload: probability} of sampled products, block by block: each rounding has its own edge."""
    found = {}
    for place, block in enumerate(m.blocks):
        words = [(number.to_bytes(4, "big"), Fraction(1, m.total)) for number in range(m.total)]
        read = words[m.ends[place] - m.weights[place] : m.ends[place]]
        for i, j in [m.coordinates[product] for product in block]:
            read = joined(read, rounding(quantised[i] * quantised[j]))
        flips = [uniform(m.patterns - 1)] if m.signs > 1 else []
        found |= law_of(m, quantised, [joined(read, coin(m.threshold)), *flips])
    return found


def worst_ratio(laws):
    """The largest ratio of two answers' probabilities of one report."""
    payloads = {payload for law in laws for payload in law}
    return max(max(law[payload] for law in laws) / min(law[payload] for law in laws) for payload in payloads)


def faults(m, laws):
    """What of the stated law (odds, p, q) the exact laws of all choices break."""
    found = set()
    payloads = {payload for law in laws for payload in law}
    if any(sum(law.values()) != 1 for law in laws):
        found.add("sum")
    often, seldom = m.odds
    for payload in payloads:
        weights = [often if m.supported(payload, index) else seldom for index in range(m.choices)]
        if len({law[payload] / weight for law, weight in zip(laws, weights)}) != 1:
            found.add("odds")
    for true, law in enumerate(laws):
        for index in range(m.choices):
            chance = sum(law[payload] for payload in payloads if m.supported(payload, index))
            if chance != m.support_probability(true, index):
                found.add("p" if true == index else "q")
    return found


def stages_of(m):
    """What the permanent and the instantaneous stage of a memoized choice read."""
    again = SimpleNamespace(threshold=m.again, choices=m.choices)
    return reads_of(m.first), READS[m.of](again)


def reads_of(m):
    if m.name != "memoized":
        return READS[m.name](m)
    first, again = stages_of(m)
    return [*first, *again]


def laws_of(m):
    """{payload: probability} for each choice. Needs `few_hashes`."""
    return [law_of(m, index, reads_of(m)) for index in range(m.choices)]


@pytest.fixture
def few_hashes(monkeypatch):
    """All hash functions of `olh` can be tried."""
    monkeypatch.setattr(olh, "PRIME", PRIME)
