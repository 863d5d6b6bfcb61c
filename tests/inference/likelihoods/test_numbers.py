"""Histograms of perturbed numbers against quadrature of their definition."""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from likelihood_references import FALSE_ALARM, exponential_cells, gradient, normal_cells
from scipy import integrate, special, stats

from inference.likelihoods import BinnedPerturbed, ClippedExponential, ClippedNormal, LaplaceNoise
from inference.likelihoods.common import multinomial_log_prob
from inference.likelihoods.numbers.gaussian import mills_ratio, tilted_gaussian_masses

EDGES = np.array([-0.004, 0.11, 0.12, 0.5, 0.9, 1.004])
NORMALS = [
    (0.5, 0.2), (0.12, 1e-3), (0.3, 1e-3), (0.5, 1e3), (-0.2, 0.05), (1.3, 0.02), (-40.0, 1.0), (25.0, 3.0),
]  # fmt: skip


@jax.jit
def jitted_cells(base, scale, edges):
    return LaplaceNoise(scale).cell_probs(base, edges)


def cells(base: ClippedNormal | ClippedExponential, epsilon: float, edges: np.ndarray = EDGES) -> np.ndarray:
    return np.asarray(jitted_cells(base, 1 / epsilon, jnp.asarray(edges)))


@jax.jit
def log_prob(law, counts):
    return law.log_prob(counts)


def grid(k: int, step: float = 1e-4) -> np.ndarray:
    return np.concatenate([[-step], np.arange(1, k) / k, [1 + step]])


# Constants that JAX cached in double precision are cast when float32 code meets them.
in_float32 = pytest.mark.filterwarnings("ignore:Explicitly requested dtype")


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(40):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.05, 2, 64])
@pytest.mark.parametrize(("loc", "sd"), NORMALS)
def test_normal_cells_match_integrals(loc: float, sd: float, epsilon: float) -> None:
    expected = normal_cells(loc, sd, EDGES, 1 / epsilon)
    np.testing.assert_allclose(cells(ClippedNormal(loc, sd), epsilon), expected, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.05, 1, 20, 64])
@pytest.mark.parametrize(
    ("rate", "start"), [(1e-3, 0), (1, 0), (64, 0), (64 * (1 + 1e-9), -0.5), (20, 0.3), (2000, 0)]
)
def test_exponential_cells_match_integrals(rate: float, start: float, epsilon: float) -> None:
    expected = exponential_cells(rate, start, EDGES, 1 / epsilon)
    np.testing.assert_allclose(cells(ClippedExponential(rate, start=start), epsilon), expected, rtol=1e-10)


def test_quadrature_notices_small_faults() -> None:
    right = normal_cells(0.4, 0.3, EDGES, 1.0)
    wrong = [
        cells(ClippedNormal(0.4, 0.3), 1.001),
        cells(ClippedNormal(0.4, 0.3001), 1.0),
        cells(ClippedNormal(0.4, 0.3, low=-1e-3), 1.0),
        cells(ClippedNormal(0.4, 0.3), 1.0)[::-1],
    ]
    assert all(np.max(np.abs(w / right - 1)) > 1e-6 for w in wrong)


def test_units_and_far_edges_do_not_change_the_law() -> None:
    wide = np.array([-3.0, -0.5, 0.0, 0.25, 1.0, 2.0])
    expected = normal_cells(0.4, 0.3, wide, 0.5)
    np.testing.assert_allclose(cells(ClippedNormal(0.4, 0.3), 2.0, wide), expected, rtol=1e-12)
    base = ClippedNormal(10 + 4 * 0.4, 4 * 0.3, 10.0, 14.0)
    np.testing.assert_allclose(cells(base, 0.5, 10 + 4 * wide), expected, rtol=1e-12)


@pytest.mark.parametrize("k", [1, 7, 1024])
def test_histogram_sums_to_one(k: int) -> None:
    for epsilon, (loc, sd) in product([0.05, 1.0, 20.0, 64.0], NORMALS):
        probs = cells(ClippedNormal(loc, sd), epsilon, grid(k))
        assert np.all(probs > 0)
        assert abs(probs.sum() - 1) < 1e-12
    for epsilon, rate, start in product([0.05, 20.0], [1e-3, 20.0, 1e3], [-1.0, 0.0, 0.5]):
        assert abs(cells(ClippedExponential(rate, start=start), epsilon, grid(k)).sum() - 1) < 1e-12


def test_shape_outside_bounds_does_not_depend_on_law() -> None:
    wide = np.array([-2.0, -1.0, -0.5, 0.0, 1.0])
    one, other = (cells(ClippedNormal(loc, 0.3), 2.0, wide)[:4] for loc in (0.1, 0.8))
    np.testing.assert_allclose(one / one.sum(), other / other.sum(), rtol=1e-12)


def test_mills_ratio_and_derivative_are_accurate() -> None:
    v = np.concatenate([np.linspace(0, 12, 301), np.logspace(1, 9, 60)])
    expected = np.sqrt(np.pi / 2) * special.erfcx(v / np.sqrt(2))
    np.testing.assert_allclose(mills_ratio(jnp.asarray(v)), expected, rtol=1e-13)
    for at in (0.0, 0.3, 7.0, 1e4):
        with mp.workdps(60):
            exact = at * mp.exp(mp.mpf(at) ** 2 / 2) * mp.sqrt(mp.pi / 2) * mp.erfc(at / mp.sqrt(2)) - 1
        assert float(jax.grad(mills_ratio)(at)) == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1e-9, 1e-4, 0.4999, 0.5001, 3.0])
def test_tilted_masses_match_quadrature(width: float) -> None:
    for left, tilt in product([-30.0, -2.0, -width / 2, -width, 0.0, 5.0], [-50.0, -1.0, 0.0, 3.0]):
        edges = jnp.array([left, left + width])
        found = jax.jit(tilted_gaussian_masses)(edges, jnp.zeros(1), jnp.ones(1), tilt, jnp.array([left]))[0]
        m, exact_width = mp.mpf(left), mp.mpf(float(edges[1])) - mp.mpf(left)
        nodes = [k * exact_width / 8 for k in range(9)]
        relative = mp.quad(lambda x, t=tilt, m=m: mp.exp((t - m) * x - x**2 / 2), nodes)
        assert float(found) == pytest.approx(float(relative * mp.npdf(m)), rel=1e-10, abs=1e-300)


def log_prob_of_normal(parameters, epsilon: float = 2.0, k: int = 9):
    counts = np.arange(k + 2) % 4
    base = ClippedNormal(parameters[0], jnp.exp(parameters[1]))
    return BinnedPerturbed(base, LaplaceNoise(1 / epsilon), grid(k), counts.sum()).log_prob(counts)


normal_log_prob = jax.jit(log_prob_of_normal)
normal_slope = jax.jit(jax.grad(log_prob_of_normal))


def log_prob_of_exponential(parameters):
    counts = np.array([3, 1, 4, 1, 5, 9, 2])
    base = ClippedExponential(jnp.exp(parameters[0]), start=parameters[1])
    return BinnedPerturbed(base, LaplaceNoise(0.25), EDGES, counts.sum()).log_prob(counts)


exponential_log_prob = jax.jit(log_prob_of_exponential)
exponential_slope = jax.jit(jax.grad(log_prob_of_exponential))


@pytest.mark.slow
@pytest.mark.parametrize("at", [(0.4, -1.0), (1 / 9, -1.0), (-2.0, 0.5), (0.9, -2.0), (3.0, 3.0), (0.3, 5.0)])
def test_normal_gradient_matches_finite_differences(at: tuple[float, float]) -> None:
    expected = gradient(normal_log_prob, np.array(at), 5e-3)
    np.testing.assert_allclose(normal_slope(jnp.array(at)), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("at", [(0.0, -0.3), (np.log(4.0), -0.1), (3.0, -0.02), (-4.0, -1.0)])
def test_exponential_gradient_matches_finite_differences(at: tuple[float, float]) -> None:
    expected = gradient(exponential_log_prob, np.array(at), 2e-3)
    np.testing.assert_allclose(exponential_slope(jnp.array(at)), expected, rtol=1e-8, atol=1e-9)


def test_gradient_is_continuous_where_rate_equals_tilt() -> None:
    at = np.array([[np.log(4.0) + shift, 0.0] for shift in (-1e-5, 0.0, 1e-5)])
    below, here, above = (float(exponential_slope(jnp.array(p))[0]) for p in at)
    assert here == pytest.approx((below + above) / 2, rel=1e-8)


@jax.jit
def slope_over_grid(at, epsilon):
    return jax.vmap(jax.value_and_grad(lambda p: log_prob_of_normal(p, epsilon, 512)))(at)


@pytest.mark.slow
@in_float32
def test_float32_stays_finite_in_the_tails_and_close_elsewhere() -> None:
    double = normal_log_prob(jnp.array([0.4, -1.0]))
    with jax.enable_x64(False):
        single = normal_log_prob(jnp.array([0.4, -1.0]))
        assert single.dtype == jnp.float32
        assert float(single) == pytest.approx(float(double), rel=1e-4)
        locs, log_sds = np.meshgrid([-1e3, -3.0, 0.0, 0.5, 1.0, 40.0], np.log([1e-3, 0.05, 1.0, 1e3]))
        at = jnp.stack([jnp.array(locs.ravel()), jnp.array(log_sds.ravel())], -1)
        for epsilon in (0.05, 64.0):
            value, grad = slope_over_grid(at, epsilon)
            assert np.all(np.isfinite(value))
            assert np.all(np.isfinite(grad))


@in_float32
def test_float32_exponential_stays_finite() -> None:
    with jax.enable_x64(False):
        rates = np.log([1e-3, 1.0, 4.0, 1e3])
        starts = [-50.0, 0.0, 0.5]
        at = np.array(list(product(rates, starts)), np.float32)
        value, grad = jax.jit(jax.vmap(jax.value_and_grad(log_prob_of_exponential)))(at)
        assert value.dtype == jnp.float32
        assert np.all(np.isfinite(value))
        assert np.all(np.isfinite(grad))


@pytest.mark.slow
def test_counts_have_the_full_multinomial_probability() -> None:
    base = ClippedNormal(0.4, 0.3)
    law = BinnedPerturbed(base, LaplaceNoise(1.0), [-0.01, 0.5, 1.01], 5)
    outcomes = [c for c in product(range(6), repeat=4) if sum(c) == 5]
    found = log_prob(law, np.array(outcomes))
    assert float(np.sum(np.exp(found))) == pytest.approx(1, abs=1e-12)
    expected = stats.multinomial.logpmf(outcomes, 5, cells(base, 1.0, law.edges))
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("counts", [[15, 16, 17], [1, 40, 200], [0, 0, 16]])
def test_multinomial_coefficient_is_exact_around_the_switch(counts: list[int]) -> None:
    probs = np.array(counts) / sum(counts)
    found = multinomial_log_prob(jnp.log(jnp.maximum(probs, 1e-9)), jnp.array(counts, float))
    assert float(found) == pytest.approx(stats.multinomial.logpmf(counts, sum(counts), probs), abs=1e-11)


@pytest.mark.slow
def test_a_billion_reports_keep_their_digits() -> None:
    counts = [0, 3, 17, 500_000_001, 400_000_000, 100_000_000]
    law = BinnedPerturbed(
        ClippedNormal(0.4, 0.3), LaplaceNoise(1.0), [-0.01, 0.2, 0.5, 0.8, 1.01], sum(counts)
    )
    with mp.workdps(40):
        exact = mp.loggamma(sum(counts) + 1) - sum(mp.loggamma(c + 1) for c in counts)
        log_probs = jax.jit(lambda law: law.log_cell_probs)(law)
        exact += sum(c * mp.mpf(float(p)) for c, p in zip(counts, log_probs, strict=True))
    assert float(log_prob(law, jnp.array(counts))) == pytest.approx(float(exact), rel=1e-12)


def test_log_likelihood_is_zero_without_reports() -> None:
    law = BinnedPerturbed(ClippedNormal(0.4, 0.3), LaplaceNoise(1.0), EDGES, 0)
    assert float(log_prob(law, jnp.zeros(7, int))) == 0


@pytest.mark.slow
def test_batches_vmap_and_jit_agree() -> None:
    locs, counts = jnp.array([-0.5, 0.2, 0.7]), jnp.array([3, 1, 4, 1, 5, 9, 2])

    def one(loc):
        return BinnedPerturbed(ClippedNormal(loc, 0.3), LaplaceNoise(0.5), EDGES, 25).log_prob(counts)

    batch = BinnedPerturbed(ClippedNormal(locs, 0.3), LaplaceNoise(0.5), EDGES, 25)
    expected = [jax.jit(one)(loc) for loc in locs]
    assert batch.batch_shape == (3,)
    assert jax.eval_shape(lambda: batch.sample(jax.random.key(0), (2,))).shape == (2, 3, 7)
    np.testing.assert_allclose(log_prob(batch, counts), expected, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.vmap(one))(locs), expected, rtol=1e-12)
    scales = BinnedPerturbed(ClippedNormal(0.2, 0.3), LaplaceNoise(jnp.array([0.5, 2.0])), EDGES, 25)
    np.testing.assert_allclose(log_prob(scales, counts)[0], expected[1], rtol=1e-12)


def chi_square_p_value(counts: np.ndarray, probs: np.ndarray) -> float:
    return float(stats.chisquare(counts, counts.sum() * probs / probs.sum()).pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("base", [ClippedNormal(0.4, 0.5), ClippedExponential(2.0, start=-0.1)])
def test_samplers_follow_the_cells(base: ClippedNormal | ClippedExponential) -> None:
    n, noise = 200_000, LaplaceNoise(0.5)
    keys = jax.random.split(jax.random.key(1), 3)
    reports = np.asarray(base.sample(keys[0], (n,)) + noise.sample(keys[1], (n,)))
    simulated = np.bincount(np.searchsorted(EDGES, reports, side="right"), minlength=7)
    law = BinnedPerturbed(base, noise, EDGES, n)
    drawn, probs, off = np.asarray(law.sample(keys[2])), cells(base, 2.0), cells(base, 1 / 0.6)
    assert drawn.sum() == n
    for counts in (simulated, drawn):
        assert chi_square_p_value(counts, probs) > FALSE_ALARM
        assert chi_square_p_value(counts, off) < FALSE_ALARM


@pytest.mark.parametrize("base", [ClippedNormal(0.4, 0.5), ClippedExponential(2.0, start=-0.1)])
def test_clipped_laws_have_mass_one(base: ClippedNormal | ClippedExponential) -> None:
    inside = integrate.quad(lambda x: float(np.exp(base.log_prob(x))), 1e-12, 1 - 1e-12)[0]
    assert inside + sum(np.exp(base.log_prob(jnp.array([0.0, 1.0])))) == pytest.approx(1, abs=1e-9)


def test_bad_arguments_are_refused() -> None:
    base = ClippedNormal(0.4, 0.3)
    with pytest.raises(ValueError, match=r"do not cover the bounds"):
        BinnedPerturbed(base, LaplaceNoise(1.0), [0.1, 0.5, 1.0], 5)
    with pytest.raises(ValueError, match="noise scales"):
        BinnedPerturbed(base, LaplaceNoise(1e-4), EDGES, 5)
    with pytest.raises(ValueError, match="scale"):
        ClippedNormal(0.4, -0.3, validate_args=True)
    with pytest.raises(ValueError, match="edges"):
        BinnedPerturbed(base, LaplaceNoise(1.0), [0.0, 0.7, 0.5, 1.0], 5, validate_args=True)
