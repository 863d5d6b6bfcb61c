"""Histograms of perturbed numbers against quadrature of their definition."""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from likelihood_references import exponential_cells, gradient, normal_cells

from inference.likelihoods import BinnedPerturbed, ClippedExponential, ClippedNormal, LaplaceNoise
from inference.likelihoods.numbers.gaussian import tilted_gaussian_masses

EDGES = np.array([-0.004, 0.11, 0.12, 0.5, 0.9, 1.004])
NORMALS = [(0.5, 0.2), (0.12, 1e-3), (-0.2, 0.05), (-40.0, 1.0)]  # fmt: skip


@jax.jit
def jitted_cells(base, scale, edges):
    return LaplaceNoise(scale).cell_probs(base, edges)


def cells(base: ClippedNormal | ClippedExponential, epsilon: float, edges: np.ndarray = EDGES) -> np.ndarray:
    return np.asarray(jitted_cells(base, 1 / epsilon, jnp.asarray(edges)))


def grid(k: int, step: float = 1e-4) -> np.ndarray:
    return np.concatenate([[-step], np.arange(1, k) / k, [1 + step]])


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(40):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.05, 64])
@pytest.mark.parametrize(("loc", "sd"), NORMALS)
def test_normal_cells_match_integrals(loc: float, sd: float, epsilon: float) -> None:
    expected = normal_cells(loc, sd, EDGES, 1 / epsilon)
    np.testing.assert_allclose(cells(ClippedNormal(loc, sd), epsilon), expected, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.05, 20])
@pytest.mark.parametrize(("rate", "start"), [(1e-3, 0), (64 * (1 + 1e-9), -0.5), (20, 0.3)])
def test_exponential_cells_match_integrals(rate: float, start: float, epsilon: float) -> None:
    expected = exponential_cells(rate, start, EDGES, 1 / epsilon)
    np.testing.assert_allclose(cells(ClippedExponential(rate, start=start), epsilon), expected, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 1024])
def test_histogram_sums_to_one(k: int) -> None:
    for epsilon, (loc, sd) in product([0.05, 1.0, 20.0, 64.0], NORMALS):
        probs = cells(ClippedNormal(loc, sd), epsilon, grid(k))
        assert np.all(probs > 0)
        assert abs(probs.sum() - 1) < 1e-12
    for epsilon, rate, start in product([0.05, 20.0], [1e-3, 20.0, 1e3], [-1.0, 0.0, 0.5]):
        assert abs(cells(ClippedExponential(rate, start=start), epsilon, grid(k)).sum() - 1) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("width", [1e-9, 0.4999, 0.5001, 3.0])
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
@pytest.mark.parametrize("at", [(0.4, -1.0), (1 / 9, -1.0), (3.0, 3.0)])
def test_normal_gradient_matches_finite_differences(at: tuple[float, float]) -> None:
    expected = gradient(normal_log_prob, np.array(at), 5e-3)
    np.testing.assert_allclose(normal_slope(jnp.array(at)), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("at", [(0.0, -0.3), (np.log(4.0), -0.1)])
def test_exponential_gradient_matches_finite_differences(at: tuple[float, float]) -> None:
    expected = gradient(exponential_log_prob, np.array(at), 2e-3)
    np.testing.assert_allclose(exponential_slope(jnp.array(at)), expected, rtol=1e-8, atol=1e-9)
