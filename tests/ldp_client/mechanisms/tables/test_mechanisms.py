"""A holder's table becomes exact sums with noise of the stated law on integers, and nothing else.

Sensitivities of tables are compared with a numerical search over pairs of tables.
"""

from math import floor

import numpy as np
import pytest

from ldp_client.bulk import perturb_many
from ldp_client.core.noise_levels import gaussian_radius
from ldp_client.documents.errors import AnswerError, ReportError, StudyError
from ldp_client.mechanisms.tables.base import LARGEST_WORD, TableSums
from ldp_client.mechanisms.tables.powers import PowerSums, power_distance, products_of
from ldp_client.mechanisms.tables.sensitivities import ddplr_sensitivity, svec_sensitivity
from ldp_client.mechanisms.tables.statistics import l1_distance
from schemas import Rational
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.mechanisms.tables import asking
from tests.ldp_client.mechanisms.tables.asking import mechanism, random_places, table
from tests.statistics import Stream

SCALE = 1 << 20
STATED = {**studies.LAPLACE_TABLE["mechanism"], "fourth_moments": True}
MOMENTS = {**studies.LAPLACE_TABLE, "id": "moments", "mechanism": STATED}
EACH = pytest.mark.parametrize("question", [*studies.TABLES, MOMENTS], ids=lambda question: question["id"])
OPTIONS = [{}, {"count_share": "0.25"}, {"average": 3, "intercept": False}]
CASES = [(question, options) for question in studies.TABLES for options in OPTIONS]
CASES += [(MOMENTS, options) for options in ({}, {"count_share": "0.25"}, {"intercept": False})]
EACH_OPTION = pytest.mark.parametrize(("question", "options"), CASES)


def words_without_noise(m, places):
    """Return the integers before noise: a stream's payload minus its payload for sums of zero."""
    silent = TableSums(m.average, [0] * len(m.multipliers))
    noise = m.words(m.randomise(silent, Stream(3)))
    words = [a - b for a, b in zip(m.words(m.perturb(table(places), Stream(3))), noise)]
    return words[m.count_step > 0 :]


@EACH_OPTION
def test_worst_neighbours_are_exactly_the_noise_radius_apart(question, options):
    m = mechanism(question, **options)
    shape = m.intercept, m.average
    laplace = asking.powers_distance(m.intercept) if m.products else asking.laplace_distance(*shape)
    distance = {
        "table_statistics": asking.svec_distance(1.0, *shape),
        "table_normal_equations": asking.ddplr_distance(*shape),
        "table_statistics_laplace": laplace,
    }[m.name]
    _, (record, other, rest) = asking.largest(distance, 2, 1.0)
    others = np.tile(rest, (m.average - 1, 1))
    one, two = (words_without_noise(m, [*others, end]) for end in (record, other))
    shift = [abs(a - b) for a, b in zip(one, two)]
    share = Rational(1) - Rational.parse(options.get("count_share", "0"))
    if m.law == "gaussian":
        hidden = gaussian_radius(share, Rational.parse("1e-6") * share, len(shift))
        assert 0.99 * hidden < sum(x * x for x in shift) ** 0.5 <= hidden
    elif m.products:
        half = floor(share * SCALE) // 2
        assert sum(shift[: len(m.coordinates)]) <= half
        assert 0.5 * half < sum(shift[len(m.coordinates) :]) <= half
    else:
        hidden = floor(share * SCALE)
        assert 0.93 * hidden < sum(shift) <= hidden


@EACH_OPTION
def test_entries_are_the_sums_of_products_in_scaled_units(question, options, monkeypatch):
    """With the noise taken out: Σ over groups of k of uuᵀ / k, and the count of the records in groups."""
    m = mechanism(question, norm="0.8", **options)
    monkeypatch.setattr(m, "_noise", lambda count, _: [0] * count)
    places = random_places(103)
    whole = 103 // m.average * m.average
    rows = np.column_stack([np.ones(whole), asking.clipped(places[:whole], 0.8)])
    groups = rows.reshape(-1, m.average, 4).sum(axis=1)
    expected = groups.T @ groups / m.average
    payload = m.perturb(table(places))
    m.check(payload)
    count, entries = m.entries(payload)
    assert count == whole
    assert m.intercept == any(i == 0 for i, _ in m.coordinates)
    assert (3, 3) in m.coordinates or m.name == "table_normal_equations"
    assert entries == pytest.approx([expected[i, j] for i, j in m.coordinates], abs=1e-3)
    if m.products:
        sums = asking.powers(rows[:, 1:3], m.intercept).sum(axis=0)
        assert m.power_sums(payload) == pytest.approx(sums, abs=2e-3)


@EACH_OPTION
def test_noise_scales_are_one_over_the_grid_of_the_entries(question, options, monkeypatch):
    """Noise of 1 in each of its integers moves an entry by its scale, and a count by its own."""
    m = mechanism(question, **options)
    moved = []
    for noise in (0, SCALE):
        monkeypatch.setattr(m, "_noise", lambda count, _, noise=noise: [noise] * count)
        payload = m.perturb(table(random_places(30)))
        count, entries = m.entries(payload)
        moved.append((count, *entries, *m.power_sums(payload)))
    count, *entries = np.subtract(moved[1], moved[0])
    assert entries == pytest.approx([*m.noise_scale, *m.power_noise_scale])
    width = 2**0.5 if m.law == "laplace" else 1
    assert count == pytest.approx(m.count_noise_sd / width, abs=1)


@EACH
def test_removing_a_record_equals_replacing_it_by_zeros(question):
    """The stated add/remove ε relies on this: (0, 0) adds nothing to any released sum."""
    m = mechanism(question)
    places = random_places(20)
    zeroed = np.vstack([places[:-1], np.zeros(3)])
    gone, zero = (m.quantise(table(some)) for some in (places[:-1], zeroed))
    assert gone.sums == zero.sums
    assert (gone.count, zero.count) == (19, 20)


@EACH
def test_epsilon_and_delta_follow_from_the_integers(question):
    epsilon, delta = Rational.parse("0.3"), Rational.parse("1e-6")
    m = mechanism(question, epsilon="0.3", count_share="0.1")
    if m.law == "gaussian":
        assert (m.privacy.epsilon, m.privacy.delta) == (epsilon, delta)
        tenth = Rational(1, 10)
        assert m.count_step == gaussian_radius(epsilon * tenth, delta * tenth, 1)
    else:
        assert m.privacy.delta == Rational(0)
        assert Rational(0) <= epsilon - m.privacy.epsilon < Rational(4, SCALE)
        assert m.count_step == SCALE * 3 // 100


def test_norm_beyond_the_box_is_cut_to_the_box():
    """Features in [−1, 1] are no longer than √d: a larger norm would only add noise."""
    assert mechanism(norm="1.5").noise_scale == mechanism(norm="100").noise_scale
    assert mechanism(norm="1.3").noise_scale < mechanism(norm="1.5").noise_scale


@EACH
def test_a_huge_sum_saturates(question):
    m = mechanism(question)
    words = m.words(m.randomise(TableSums(1 << 80, [1 << 200] * len(m.multipliers)), Stream(1)))
    assert set(words) == {LARGEST_WORD}


@pytest.mark.parametrize("question", studies.TABLES, ids=lambda question: question["id"])
def test_impossible_payloads_are_refused(question):
    m = mechanism(question, average=2)
    payload = m.perturb(table(random_places(10)))
    m.check(payload)
    for count in (0, 9, 1 << 63):
        with pytest.raises(ReportError, match="count"):
            m.check(count.to_bytes(8, "big") + payload[8:])
    with raises(ReportError, "report.payload_impossible", str(len(payload)), str(len(payload) - 1)):
        m.check(payload[:-1])
    if m.law == "gaussian":
        with pytest.raises(ReportError, match="range"):
            m.check(payload[:-8] + (1 << 40).to_bytes(8, "big"))


@pytest.mark.parametrize("intercept", [True, False])
def test_sums_of_powers_are_exact(intercept):
    rows = np.random.default_rng(5).integers(-SCALE, SCALE, (700, 5), endpoint=True)
    rows[0, 1:], rows[1, 1:] = SCALE, -SCALE
    sums = PowerSums(3)
    sums.add(rows)
    for product in products_of(3, intercept):
        assert sums.total(product) == np.prod(rows.astype(object)[:, product], axis=1).sum()


def test_fourth_moments_take_half_of_epsilon():
    whole, m = mechanism(studies.LAPLACE_TABLE), mechanism(MOMENTS)
    assert m.noise_scale == pytest.approx([2 * scale for scale in whole.noise_scale], rel=1e-3)
    scale = 2 * power_distance(m.radius, 2, True) / SCALE**4
    assert m.power_noise_scale == pytest.approx([scale] * len(m.products), rel=1e-3)
    assert mechanism(studies.LAPLACE_TABLE, epsilon="0.000015").privacy.epsilon > 0
    with raises(StudyError, "study.epsilon_too_small_for_table"):
        mechanism(MOMENTS, epsilon="0.000015")


def test_fourth_moments_of_averages_or_too_many_features_are_refused():
    with raises(StudyError, "study.fourth_moments_invalid", field="questions[0].mechanism.fourth_moments"):
        mechanism(MOMENTS, average=3)
    many = [{"id": f"f{i}", "bounds": ["0", "1"]} for i in range(21)]
    with raises(StudyError, "study.fourth_moments_invalid", "20"):
        mechanism({**MOMENTS, "features": many})
    with pytest.raises(StudyError):
        mechanism(studies.TABLE, fourth_moments=True)


def test_perturb_many_rejects_tables():
    with raises(AnswerError, "core.table_alone"):
        perturb_many(mechanism(), [studies.ROWS])


@pytest.mark.parametrize(
    ("features", "norm", "intercept", "average", "tight_ddplr", "tight_laplace"),
    [
        (2, 1.0, True, 1, 0.997, 0.94),
        (5, 2.0, True, 1, 0.8, 0.9),
        (3, 0.3, False, 1, 0.997, 0.94),
        (3, 0.5, True, 5, 0.997, 0.94),
        (3, 1.5, False, 10, 0.8, 0.94),
        (3, 3**0.5, True, 1, 0.8, 0.999),
    ],
)
def test_the_distances_of_statistics(features, norm, intercept, average, tight_ddplr, tight_laplace):
    """Laplace's bounds are the truth where only the box binds, and within 6 % where the norm does."""
    constant = int(norm / 2**0.5 * SCALE) if intercept else 0
    square_norm, length = int(1.5 * norm * norm * SCALE * SCALE), int(norm * SCALE)
    weighted = svec_sensitivity(constant, square_norm, average)
    ddplr = ddplr_sensitivity(length, SCALE, intercept, average)
    laplace = l1_distance(length, SCALE, features, intercept, average)
    for distance, bound, tight in (
        (asking.svec_distance(norm, intercept, average), weighted / SCALE**2, 0.997),
        (asking.ddplr_distance(intercept, average), ddplr / SCALE**2, tight_ddplr),
        (asking.laplace_distance(intercept, average), laplace / SCALE**2, tight_laplace),
    ):
        found, _ = asking.largest(distance, features, norm)
        assert bound * tight <= found <= bound * (1 + 1e-5)


@pytest.mark.parametrize(("features", "norm", "intercept"), [(1, 1.0, False), (2, 1.0, True), (3, 0.5, True)])
def test_the_distance_of_fourth_moments(features, norm, intercept):
    """Two bounds of two orders, added: not sharp, never below."""
    found, _ = asking.largest(asking.powers_distance(intercept), features, norm)
    bound = power_distance(round(norm * SCALE), features, intercept) / SCALE**4
    assert 0.5 * bound <= found <= bound * (1 + 1e-5)
