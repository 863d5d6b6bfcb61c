"""The exact law of a report of sampled products, and the records that tell most."""

from fractions import Fraction

from ldp_client.mechanisms.sampled_products import SPARE_BITS, SQUARE
from tests.ldp_client.exact_laws import coin, joined, law_of, uniform

HIGH = {"age": 1e9, "married": "yes", "rate": 5}
RECORDS = [
    HIGH,
    {"age": -1e9, "married": "no", "rate": 1},
    {"age": 42, "married": False, "rate": 1},
    {"age": 33.1, "married": True, "rate": 2.123},
]


def rounding(product):
    """Eight bytes that round a product up, and eight that round it down."""
    up = Fraction(SQUARE + product, 2 * SQUARE)
    last = (SQUARE + product) << SPARE_BITS
    ends = [(max(last - 1, 0), up), (min(last, (1 << 64) - 1), 1 - up)]
    return [(value.to_bytes(8, "big"), chance) for value, chance in ends]


def law(m, quantised):
    """{payload: probability}, block by block, as the rounding of each product has its own edge."""
    found = {}
    for place, block in enumerate(m.blocks):
        words = [(number.to_bytes(4, "big"), Fraction(1, m.total)) for number in range(m.total)]
        read = words[m.ends[place] - m.weights[place] : m.ends[place]]
        for i, j in [m.coordinates[product] for product in block]:
            read = joined(read, rounding(quantised[i] * quantised[j]))
        flips = [uniform(m.patterns - 1)] if m.signs > 1 else []
        found |= law_of(m, quantised, [joined(read, coin(m.threshold)), *flips])
    return found
