"""The noise samplers against their exact laws."""

import itertools

import mpmath
import numpy as np
import pytest

from ldp_client.core import strips
from ldp_client.core.randomness import NotForRealAnswers
from tests.statistics import follows, seeded

LAWS = {"normal": strips.normal, "laplace": strips.laplace}


@pytest.mark.parametrize("name", sorted(LAWS))
def test_the_lowest_bits_are_fair(name):
    """The promise of exact noise counts the law itself, on a coarser grid."""
    source = seeded(name)
    values = np.concatenate([LAWS[name](1000, source) for _ in range(50)])
    assert follows(np.bincount(values & 255, minlength=256), np.full(256, 1 / 256))


@pytest.mark.parametrize("name", sorted(LAWS))
def test_the_alias_table_holds_every_height_of_every_strip_once(name):
    table = strips.table_of(name)
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
    table = strips.table_of(name)
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
    table = strips.table_of(name)
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
    table = strips.table_of("laplace")
    # Column 511's own part starts at height 0, which lies under the tail's weight.
    word = (511 << strips.COLUMN_BITS).to_bytes(8, "little")
    first_strip = bytes(12)
    stream = iter([word + bytes(4), first_strip])
    edge = 511 << strips.CELL_BITS
    assert table.threshold[511] > 0
    assert strips.laplace(1, NotForRealAnswers(lambda _size: next(stream))) == [edge]
