"""The browser's port bounds the normal law in its own way, and comes to the same integers."""

import json
import random

from ldp_client.core.noise_levels import gaussian_radius
from ldp_client.documents.rational import Rational
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

CASES = 60
SCRIPT = """
const {{ gaussianRadius }} = await import("{port}/noise_levels.js");
const radius = ([a, b, c, d, dimension]) =>
  gaussianRadius([BigInt(a), BigInt(b)], [BigInt(c), BigInt(d)], dimension);
console.log(JSON.stringify({cases}.map((one) => String(radius(one)))));
"""
# Delta near 1 and far below, and no radius at all.
ENDS = [
    ["64", "1", "999999", "1000000", 1],
    ["64", "1", "1", "2", 1],
    ["1", "1000000000", "1", str(10**30), 1],
    ["1", "1000000", "1", "2", 3],
]


def drawn():
    source = random.Random(3)
    for _ in range(CASES):
        epsilon, delta = 10 ** source.uniform(-4, 1.8), 10 ** source.uniform(-30, -0.05)
        exact = [int(epsilon * 10**9), 10**9, int(delta * 10**40), 10**40]
        yield [*map(str, exact), source.randint(1, 2000)]


def test_gaussian_radii_are_the_same():
    cases = [*ENDS, *drawn()]
    script = SCRIPT.format(port=JAVASCRIPT, cases=json.dumps(cases))
    found = [int(text) for text in json.loads(npm.node("--input-type=module", "-e", script))]
    expected = [
        gaussian_radius(Rational(int(a), int(b)), Rational(int(c), int(d)), dimension)
        for a, b, c, d, dimension in cases
    ]
    assert found == expected
    assert found[2] == 0
