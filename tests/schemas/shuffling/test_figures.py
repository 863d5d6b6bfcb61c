"""Published figures, rounding, and that more people, less ε and more δ never make the bound worse."""

import random
from fractions import Fraction
from math import log, nextafter

import pytest

from ldp_client.documents.errors import InputError
from schemas.shuffling.amplifying import delta_of
from schemas.shuffling.laws import any_law
from schemas.shuffling.reports import shuffled_epsilon
from tests.kit.errors import raises
from tests.kit.work import counted


def test_bound_matches_published_tight_accountants():
    """At n = 100,000 and ε₀ = 4 upper and lower bounds meet at 0.118 (δ = 1e-6)."""
    assert 0.118 < shuffled_epsilon(4, 100_000) < 0.1186
    assert shuffled_epsilon("4", 1000) == pytest.approx(1.85, abs=0.01)


@pytest.mark.slow
def test_hundred_million_reports_take_seconds():
    """Four times the calls that it takes, two seconds'."""
    with counted() as calls:
        assert shuffled_epsilon(4, 10**8) < 0.003
    assert calls.made < 5_000_000


@pytest.mark.parametrize("delta", ["1e-6", "0.1", "0.9"])
@pytest.mark.parametrize("own", [40, 64])
def test_very_large_epsilon_gets_no_amplification(own, delta):
    """1 − δ = e^(ε − ε₀), near enough, and in a fraction of a second."""
    with counted() as calls:
        assert shuffled_epsilon(own, 1000, delta) == pytest.approx(own + log(1 - float(delta)), abs=3e-6)
    assert calls.made < 50_000


def test_bound_is_monotone_in_people_epsilon_and_delta():
    draw = random.Random(22)
    for _ in range(3):
        people, own = int(10 ** draw.uniform(0, 2)), draw.uniform(0.05, 6)
        delta = 10 ** draw.uniform(-9, -2)
        found = shuffled_epsilon(own, people, delta)
        assert found <= nextafter(own, 9)
        more = people + draw.randint(1, people)
        assert shuffled_epsilon(own, more, delta) <= found
        assert shuffled_epsilon(own * draw.uniform(0.9, 1), people, delta) <= found
        assert shuffled_epsilon(own, people, delta * draw.uniform(1, 3)) <= found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("1", 0, "1e-6"), "set.people"),
        (("1", 10**13, "1e-6"), "set.people"),
        (("1", 10, "0"), "set.delta"),
        (("1", 10, "1"), "set.delta"),
        (("0", 10, "1e-6"), "set.epsilon"),
        (("nan", 10, "1e-6"), "set.decimal"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, said):
    with raises(InputError, said):
        shuffled_epsilon(*arguments)
    with raises(InputError, "set.towards"):
        delta_of(any_law(Fraction(3)), 10, Fraction(-1))
