"""The noise samplers against their exact laws."""

import itertools
from bisect import bisect_left

import mpmath
import numpy as np
import pytest
from scipy import special

from ldp_client.core import strips
from ldp_client.core.randomness import NotForRealAnswers
from tests.statistics import follows, seeded

DRAWS = 400_000
UNIT = 1 << 20
EDGES = np.concatenate([np.linspace(-6, 6, 241)[1:-1], [-0.001, 0.001]])


def laplace_cdf(x):
    return np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0)), 1 - 0.5 * np.exp(-np.maximum(x, 0)))


LAWS = {"normal": (strips.normal, special.ndtr), "laplace": (strips.laplace, laplace_cdf)}


@pytest.fixture(scope="module", params=sorted(LAWS))
def drawn(request):
    (sampler, cdf), source = LAWS[request.param], seeded(request.param)
    values = [value for _ in range(DRAWS // 1000) for value in sampler(1000, source)]
    return np.asarray(values), cdf


def cell_probabilities(cdf, edges, scale=1.0):
    """Return probabilities of round(2**20 · scale · X) in the cells between half-integer edges."""
    points = np.concatenate([[0.0], cdf(edges / (UNIT * scale)), [1.0]])
    return np.diff(points)


def test_the_law_is_exact_and_a_wrong_scale_is_noticed(drawn):
    values, cdf = drawn
    edges = np.floor(np.sort(EDGES) * UNIT) + 0.5
    counts = np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1)
    assert follows(counts, cell_probabilities(cdf, edges))
    for scale in (0.8, 1.2):
        assert not follows(counts, cell_probabilities(cdf, edges, scale))


def test_the_lowest_bits_are_fair(drawn):
    values, _ = drawn
    assert follows(np.bincount(values & 255, minlength=256), np.full(256, 1 / 256))


@pytest.mark.parametrize("name", sorted(LAWS))
def test_the_alias_table_holds_every_height_of_every_strip_once(name):
    LAWS[name][0](1, seeded(name))
    table = strips._tables[name]
    capacity = 1 << strips.COLUMN_BITS
    parts = [[] for _ in range(strips.STRIPS)]
    for column in range(strips.STRIPS):
        parts[column].append((0, table.threshold[column]))
        if table.threshold[column] < capacity:
            shift = table.other_start[column]
            parts[table.other[column]].append((table.threshold[column] + shift, capacity + shift))
    total = 0
    for strip, pieces in enumerate(parts):
        pieces.sort()
        assert pieces[0][0] == 0
        assert all(left[1] == right[0] for left, right in itertools.pairwise(pieces)), strip
        weight = pieces[-1][1]
        assert weight >= table.sure[strip]
        total += weight
    assert total == 1 << strips.TOTAL_BITS


@pytest.mark.parametrize("name", sorted(LAWS))
def test_acceptance_decides_exactly_at_the_curve(name):
    """A height just under M·f(x) is kept and one just above is not, at points all over the curve."""
    source = seeded("curve", name)
    LAWS[name][0](1, source)
    table = strips._tables[name]
    last = strips.STRIPS - 1 if name == "laplace" else strips.STRIPS
    for strip in range(0, last, 7):
        for point in (0, 1, 12345678, (1 << 31) - 2):
            x = mpmath.mpf(strip << 31 | point) / 2**36
            y = mpmath.mpf((strip << 31 | point) + 1) / 2**36
            curve = (lambda t: mpmath.exp(-t * t / 2)) if name == "normal" else (lambda t: mpmath.exp(-t))
            scale = mpmath.mpf(table.scale) * 2**strips.CURVE_BITS / table.total
            kept, dropped = int(scale * curve(y)) - 1, int(scale * curve(x)) + 1
            assert kept < 1 or table._under_curve(strip, point, kept - 1, source)
            assert not table._under_curve(strip, point, dropped, source)


@pytest.mark.parametrize("name", sorted(LAWS))
def test_undecided_draws_take_more_digits_until_they_are_certain(name):
    """At the height of the curve itself, the digits drawn decide: all ones are above, all zeros below."""
    LAWS[name][0](1, seeded(name))
    table = strips._tables[name]
    strip, point = 20, 123456789
    edge = (strip << 31 | point) + 1
    height = table.scale * table._low(edge, 36, 96) // table.total
    asked = []

    def zeros(size):
        asked.append(size)
        return bytes(size)

    verdicts = {
        table._under_curve(strip, point, height + step, NotForRealAnswers(zeros))
        for step in (-1, 0, 1, 1 << 40)
    }
    assert verdicts == {True, False}
    assert asked


def test_the_laplace_tail_restarts_where_the_table_ends():
    """A word that falls into the last strip's sure part adds its edge and draws again."""
    strips.laplace(1, seeded("laplace"))
    table = strips._tables["laplace"]
    # Column 511's own part starts at height 0, which lies under the tail's weight.
    word = (511 << strips.COLUMN_BITS).to_bytes(8, "little")
    first_strip = bytes(12)
    stream = iter([word + bytes(4), first_strip])
    edge = 511 << strips.CELL_BITS
    assert table.threshold[511] > 0
    assert strips.laplace(1, NotForRealAnswers(lambda _size: next(stream))) == [edge]


@pytest.mark.slow
def test_far_tails_have_their_exact_share():
    """P(|normal| > 4) and P(|Laplace| > 8), counted by sorted draws."""
    for name, limit, share in (("normal", 4.0, 2 * special.ndtr(-4.0)), ("laplace", 8.0, np.exp(-8.0))):
        (sampler, _), source = LAWS[name], seeded("tails", name)
        values = sorted(abs(v) for _ in range(300) for v in sampler(1000, source))
        beyond = len(values) - bisect_left(values, limit * UNIT)
        assert follows([beyond, len(values) - beyond], [share, 1 - share])
