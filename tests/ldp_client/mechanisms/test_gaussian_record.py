"""Perturbed records: any two are within the noise radius. The promise of exact noise tests the noise."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from ldp_client.core.noise_levels import gaussian_radius
from schemas import Rational
from tests import studies
from tests.studies import mechanism_of as mechanism

AGE, YEARS = (np.array([float(bound) for bound in feature["bounds"]]) for feature in studies.FEATURES)


def with_share(question, share, epsilon="1"):
    return {**question["mechanism"], "response_share": share, "epsilon": epsilon}


def record(age, years, **response):
    """A record from features in [−1, 1]."""
    scaled = (AGE.mean() + age * np.ptp(AGE) / 2, YEARS.mean() + years * np.ptp(YEARS) / 2)
    return {"age": scaled[0], "years": scaled[1], **response}


@pytest.mark.parametrize(("norm", "share"), [("0.01", "0.25"), ("1", "0.9"), ("2", "0.01")])
def test_any_two_records_are_within_the_noise_radius(norm, share):
    """Opposite corners reach it; random records stay within, in integers."""
    m = mechanism(studies.RECORD, norm=norm, mechanism=with_share(studies.RECORD, share))
    limit = gaussian_radius(Rational(1), Rational.parse("1e-6"), 3)
    random = np.random.default_rng(5)
    corners = [record(x, 0, rate=r) for x, r in ((1, 5), (-1, 1), (1, 1))]
    others = [record(*random.uniform(-1.5, 1.5, 2), rate=random.uniform(0, 6)) for _ in range(60)]
    vectors = [m.quantise(one) for one in corners + others]
    square = max(sum((a - b) ** 2 for a, b in zip(v, w)) for v in vectors for w in vectors)
    assert square <= limit**2
    shares = [(v - w) ** 2 / limit**2 for v, w in zip(vectors[0], vectors[1])]
    reach = min(1, 1 / float(norm)) ** 2
    assert shares == pytest.approx([(1 - float(share)) * reach, 0, float(share)], rel=1e-2, abs=1e-9)


@pytest.mark.parametrize("share", ["0.1", "0.75"])
def test_a_yes_no_response_has_its_share_of_epsilon(share):
    m = mechanism(studies.YES_NO_RECORD, mechanism=with_share(studies.YES_NO_RECORD, share, "2"))
    of_features = Rational(2) - Rational(2) * Rational.parse(share)
    assert m.distance == gaussian_radius(of_features, Rational.parse("1e-6"), 2)
    corners = [m.quantise(record(*pair, affair=True)) for pair in ((1, 0), (-1, 0), (1, 1), (-1, -1))]
    square = max(sum((a - b) ** 2 for a, b in zip(v[:2], w[:2])) for v in corners for w in corners)
    assert m.distance**2 * 0.999 < square <= m.distance**2
    with mpmath.workprec(300):
        odds = mpmath.log(mpmath.mpf(m.odds[0]) / m.odds[1])
        features = mpmath.mpf(of_features.numerator) / of_features.denominator
        total = mpmath.mpf(m.privacy.epsilon.numerator) / m.privacy.epsilon.denominator
        assert 0 <= total - (features + odds) < 1e-29
        assert odds <= 2 * mpmath.mpf(share)
    assert m.privacy.epsilon <= Rational(2)
    assert m.p / m.q == Fraction(*m.odds)
    assert m.privacy.delta == Rational.parse("1e-6")


def test_entries_are_the_record_in_scaled_units():
    m = mechanism(studies.RECORD, norm="3")
    entries = m.quantise(record(0.5, -0.25, rate=4))
    assert np.asarray(entries[:2]) / m.grid == pytest.approx([0.5, -0.25], abs=1 / m.grid)
    assert entries[2] / m.response_grid == pytest.approx(0.5, abs=1 / m.response_grid)
    assert m.quantise({"age": 29.75, "years": 11.5, "rate": 3}) == [0, 0, 0]


def test_features_beyond_the_norm_are_clipped_in_integers():
    m = mechanism(studies.RECORD, norm="0.3")
    x, y, _ = m.quantise(record(1.4, -1.4, rate=1))
    assert x * x + y * y <= m.radius**2
    assert x == pytest.approx(min(m.radius / np.sqrt(2), m.grid), rel=1e-3)
