"""Fourth moments of a table's features: exact sums, their distance, one ε with the second moments."""

import itertools
from math import floor

import numpy as np
import pytest

from ldp_client.documents.errors import StudyError
from ldp_client.mechanisms.tables.powers import PowerSums, power_distance, products_of
from schemas import Rational
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.mechanisms.tables.asking import clipped, mechanism, random_places, table
from tests.ldp_client.mechanisms.tables.worst_pairs import largest
from tests.statistics import Stream

UNIT = 1 << 20


def asked(**options):
    return mechanism(studies.LAPLACE_TABLE, fourth_moments=True, **options)


def products(x, intercept):
    """(…, d) features → their products of three and four."""
    chosen = products_of(x.shape[-1], intercept)
    return np.stack([np.prod(x[..., np.asarray(one) - 1], axis=-1) for one in chosen], axis=-1)


def distance_of(intercept):
    def distance(pairs):
        x = products(pairs[:, :2, :-1], intercept)
        return np.abs(x[:, 0] - x[:, 1]).sum(axis=-1)

    return distance


@pytest.mark.parametrize(("features", "norm", "intercept"), [(1, 1.0, False), (2, 1.0, True), (3, 0.5, True)])
def test_no_two_records_are_further_apart_than_the_bound(features, norm, intercept):
    found, _ = largest(distance_of(intercept), features, norm)
    bound = power_distance(round(norm * UNIT), features, intercept) / UNIT**4
    # Two bounds of two orders, added: not sharp, never below.
    assert 0.5 * bound <= found <= bound * (1 + 1e-5)


@pytest.mark.parametrize("intercept", [True, False])
def test_sums_are_exact(intercept):
    random = np.random.default_rng(5)
    rows = random.integers(-UNIT, UNIT, (700, 5), endpoint=True)
    rows[0, 1:], rows[1, 1:] = UNIT, -UNIT
    powers = PowerSums(3)
    powers.add(rows)
    exact = rows.astype(object)
    for product in products_of(3, intercept):
        assert powers.total(product) == np.prod(exact[:, product], axis=1).sum()


@pytest.mark.parametrize("options", [{}, {"intercept": False}, {"count_share": "0.25"}], ids=str)
def test_entries_are_the_sums_in_scaled_units(options, monkeypatch):
    m = asked(norm="0.8", **options)
    monkeypatch.setattr(m, "_noise", lambda count, _: [0] * count)
    for places in (random_places(90), random_places(400)):
        rows = clipped(places, 0.8)
        payload = m.perturb(table(places))
        assert len(payload) == m.payload_size == 8 * (1 + len(m.coordinates) + len(m.products))
        count, entries = m.entries(payload)
        assert count == len(rows)
        assert entries == pytest.approx([(rows.T @ rows)[i, j] for i, j in m.coordinates], abs=2e-3)
        expected = products(rows[:, 1:3], m.intercept).sum(axis=0)
        assert m.power_sums(payload) == pytest.approx(expected, abs=2e-3)
        m.check(payload)


def test_epsilon_is_shared_and_stated_from_the_integers():
    whole, m = mechanism(studies.LAPLACE_TABLE), asked()
    assert Rational(0) <= Rational(1) - m.privacy.epsilon < Rational(4, UNIT)
    assert m.privacy.delta == Rational(0)
    assert m.noise_scale == pytest.approx([2 * scale for scale in whole.noise_scale], rel=1e-3)
    assert m.power_noise_scale == pytest.approx(
        [power_distance(m.radius, 2, True) / UNIT**4 / 0.5] * len(m.products), rel=1e-3
    )


@pytest.mark.parametrize("intercept", [True, False])
def test_neighbouring_tables_differ_by_a_shift_within_the_budget(intercept):
    """Check worst pairs of both halves and corners: distances of integers, and bytes used of the stream."""
    m = asked(intercept=intercept)
    rest = random_places(5)
    _, (record, other, _) = largest(distance_of(intercept), 2, 1.0)
    corners = [list(corner) for corner in itertools.product((-1.0, 0.0, 1.0), repeat=3)]
    pairs = [(record, other), *zip(corners[:13], corners[::-1])]
    half, reached = floor(m.privacy.epsilon * UNIT) // 2, 0
    for one, two in pairs:
        streams = Stream(7), Stream(7)
        words = [m.words(m.perturb(table([*rest, end]), stream)) for end, stream in zip((one, two), streams)]
        assert streams[0].taken == streams[1].taken > 0
        shift = [abs(a - b) for a, b in zip(*words)]
        assert sum(shift[: len(m.coordinates)]) <= half
        assert sum(shift[len(m.coordinates) :]) <= half
        reached = max(reached, sum(shift[len(m.coordinates) :]))
    assert reached > 0.5 * half


def test_half_the_budget_must_allow_noise():
    with raises(StudyError, "study.epsilon_too_small_for_table"):
        asked(epsilon="0.000015")
    assert mechanism(studies.LAPLACE_TABLE, epsilon="0.000015").privacy.epsilon.numerator > 0


def test_averages_and_too_many_features_are_refused():
    with raises(StudyError, "study.fourth_moments_invalid", field="questions[0].mechanism.fourth_moments"):
        asked(average=3)
    many = [{"id": f"f{i}", "bounds": ["0", "1"]} for i in range(21)]
    with raises(StudyError, "study.fourth_moments_invalid", "20"):
        mechanism({**studies.LAPLACE_TABLE, "features": many}, fourth_moments=True)
    with pytest.raises(StudyError):
        mechanism(studies.TABLE, fourth_moments=True)
