"""A holder's table becomes exact sums with noise of the stated law on integers, and nothing else."""

from math import floor

import numpy as np
import pytest

from ldp_client.bulk import perturb_many
from ldp_client.core.noise_levels import gaussian_radius
from ldp_client.documents.errors import AnswerError, ReportError
from ldp_client.mechanisms.tables.base import LARGEST_WORD, TableSums
from schemas import Rational
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.mechanisms.tables.asking import clipped, mechanism, random_places, table
from tests.ldp_client.mechanisms.tables.worst_pairs import (
    ddplr_distance,
    laplace_distance,
    largest,
    svec_distance,
)
from tests.statistics import Stream

SCALE = 1 << 20
EACH = pytest.mark.parametrize("question", studies.TABLES, ids=lambda question: question["id"])
OPTIONS = [{}, {"count_share": "0.25"}, {"average": 3, "intercept": False}]


def words_without_noise(m, places):
    """Return the integers before noise: a stream's payload minus its payload for sums of zero."""
    silent = [0] * len(m.coordinates)
    noise = m.words(m.randomise(TableSums(m.average, silent), Stream(3)))
    return [a - b for a, b in zip(m.words(m.perturb(table(places), Stream(3))), noise)]


@EACH
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_worst_neighbours_are_exactly_the_noise_radius_apart(question, options):
    m = mechanism(question, **options)
    shape = m.intercept, m.average
    distance = {
        "table_statistics": svec_distance(1.0, *shape),
        "table_normal_equations": ddplr_distance(*shape),
        "table_statistics_laplace": laplace_distance(*shape),
    }[m.name]
    _, (record, other, rest) = largest(distance, 2, 1.0)
    others = np.tile(rest, (m.average - 1, 1))
    one, two = (words_without_noise(m, [*others, end]) for end in (record, other))
    shift = [a - b for a, b in zip(one, two)][m.count_step > 0 :]
    share = Rational(1) - Rational.parse(options.get("count_share", "0"))
    if m.law == "gaussian":
        hidden = gaussian_radius(share, Rational.parse("1e-6") * share, len(shift))
        assert 0.99 * hidden < sum(x * x for x in shift) ** 0.5 <= hidden
    else:
        hidden = floor(share * SCALE)
        assert 0.93 * hidden < sum(map(abs, shift)) <= hidden


@EACH
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_entries_are_the_sums_of_products_in_scaled_units(question, options, monkeypatch):
    """With the noise taken out: Σ over groups of k of uuᵀ / k, and the count of the records in groups."""
    m = mechanism(question, norm="0.8", **options)
    monkeypatch.setattr(m, "_noise", lambda count, _: [0] * count)
    places = random_places(103)
    rows = clipped(places, 0.8)[: 103 // m.average * m.average]
    groups = rows.reshape(-1, m.average, 4).sum(axis=1)
    expected = groups.T @ groups / m.average
    count, entries = m.entries(m.perturb(table(places)))
    assert count == len(rows)
    assert m.intercept == any(i == 0 for i, _ in m.coordinates)
    assert (3, 3) in m.coordinates or m.name == "table_normal_equations"
    assert entries == pytest.approx([expected[i, j] for i, j in m.coordinates], abs=1e-3)


@EACH
@pytest.mark.parametrize("options", [{"average": 5}, {"count_share": "0.25"}], ids=str)
def test_noise_scales_are_one_over_the_grid_of_the_entries(question, options, monkeypatch):
    """Noise of 1 in each of its integers moves an entry by its scale, and a count by its own."""
    m = mechanism(question, **options)
    moved = []
    for noise in (0, SCALE):
        monkeypatch.setattr(m, "_noise", lambda count, _, noise=noise: [noise] * count)
        count, entries = m.entries(m.perturb(table(random_places(30))))
        moved.append((count, *entries))
    count, *entries = np.subtract(moved[1], moved[0])
    assert entries == pytest.approx(m.noise_scale)
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
        assert Rational(0) <= epsilon - m.privacy.epsilon < Rational(2, SCALE)
        assert m.count_step == SCALE * 3 // 100


def test_norm_beyond_the_box_is_cut_to_the_box():
    """Features in [−1, 1] are no longer than √d: a larger norm would only add noise."""
    assert mechanism(norm="1.5").noise_scale == mechanism(norm="100").noise_scale
    assert mechanism(norm="1.3").noise_scale < mechanism(norm="1.5").noise_scale


@EACH
def test_a_huge_sum_saturates(question):
    m = mechanism(question)
    words = m.words(m.randomise(TableSums(1 << 80, [1 << 200] * len(m.coordinates)), Stream(1)))
    assert words == [LARGEST_WORD] * len(m.coordinates)


@EACH
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


def test_perturb_many_rejects_tables():
    with raises(AnswerError, "core.table_alone"):
        perturb_many(mechanism(), [studies.ROWS])
