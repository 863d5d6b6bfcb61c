"""Clipped laws of one number, alone, under both noises and summed, against integrals over SciPy's cdf."""

from collections import namedtuple
from itertools import product

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import numpyro.distributions as dist
import pytest
from likelihood_references import derivative
from scipy import stats

from inference.likelihoods import GaussianNoise, LaplaceNoise, Perturbed, clipped
from inference.likelihoods.numbers.closed_forms import tilted_gaussian_masses
from inference.models.totals import signed_moments

NOISES = {"laplace": LaplaceNoise, "gaussian": GaussianNoise}
SCIPY = {"laplace": stats.laplace, "gaussian": stats.norm}


# A law of both libraries at some parameters, its bounds, and the accuracy of its likelihood.
Law = namedtuple("Law", "numpyro scipy at bounds accuracy", defaults=((0.0, 1.0), 1e-8))


def _exponential(rate):
    return stats.expon(scale=1 / rate)


def _gamma(shape, rate):
    return stats.gamma(shape, scale=1 / rate)


LAWS = {
    "normal": Law(dist.Normal, stats.norm, (0.4, 0.07), accuracy=1e-10),
    "normal, narrow": Law(dist.Normal, stats.norm, (0.12, 1e-3), accuracy=1e-10),
    "normal, far below": Law(dist.Normal, stats.norm, (-40.0, 1.0), accuracy=1e-10),
    "exponential": Law(dist.Exponential, _exponential, (6.0,), accuracy=1e-10),
    "exponential, flat": Law(dist.Exponential, _exponential, (1e-3,), (-0.3, 0.7), 1e-10),
    "exponential, steep": Law(dist.Exponential, _exponential, (64 * (1 + 1e-9),), (0.5, 1.5), 1e-10),
    "log-normal": Law(dist.LogNormal, lambda m, s: stats.lognorm(s, scale=np.exp(m)), (-1.0, 0.5)),
    "gamma, singular": Law(dist.Gamma, _gamma, (0.3, 3.0)),
    "gamma, far from zero": Law(dist.Gamma, _gamma, (50.0, 9.6), (5.0, 6.0)),
    "weibull": Law(dist.Weibull, lambda scale, k: stats.weibull_min(k, scale=scale), (0.5, 0.7)),
    "beta, singular": Law(dist.Beta, stats.beta, (0.2, 0.4)),
    "logistic": Law(dist.Logistic, stats.logistic, (0.4, 0.1)),
    "poisson": Law(dist.Poisson, stats.poisson, (3.0,), (1.0, 8.0)),
    "poisson, far above": Law(dist.Poisson, stats.poisson, (1000.0,), (1.0, 8.0)),
    "geometric": Law(dist.GeometricProbs, lambda p: stats.geom(p, loc=-1), (0.2,), (1.0, 8.0)),
}
WHOLE = [name for name in LAWS if name.startswith(("poisson", "geometric"))]
CLOSED = [name for name in LAWS if name.startswith(("normal", "exponential"))]


def nodes_of(law, cuts):
    """Nodes and weights between the bounds, in panels short for the law, without a kink at the cuts."""
    low, high = law.bounds
    ends = (high - low) * 10.0 ** np.arange(-40, -1, 0.5)
    own = law.scipy(*law.at).ppf(np.concatenate([ends / (high - low), np.linspace(0.01, 0.99, 30)]))
    whole = np.arange(low, high + 1) if high - low > 1 else np.zeros(1)
    panels = [np.linspace(low, high, 401), low + ends, high - ends, cuts, own, 2 * own[-1] - own, whole]
    panels = np.unique(np.clip(np.concatenate(panels), low, high))
    x, w = np.polynomial.legendre.leggauss(16)
    left, width = panels[:-1, None], np.diff(panels)[:, None]
    return (left + width * (x + 1) / 2).ravel(), (width * w / 2).ravel()


def reference_cdf(law, noise, at):
    """P(clip(X) + noise <= z) = K(z - high) + integral of F(x) k(z - x) dx, and F is bounded."""
    x, w = nodes_of(law, at)
    below = law.scipy(*law.at).cdf(x)
    return noise.cdf(at - law.bounds[1]) + noise.pdf(at[:, None] - x) @ (w * below)


LAPLACE = [*product(LAWS, ["laplace"], [1.0]), *product(CLOSED, ["laplace"], [0.05, 20.0])]
GAUSSIAN = [(name, "gaussian", 0.1) for name in ("normal", "beta, singular", "exponential", "poisson")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "noise", "scale"), LAPLACE + GAUSSIAN)
def test_cells_match_integrals(name, noise, scale):
    law = LAWS[name]
    low, high = law.bounds
    reach, count = (0.01, 256) if noise == "laplace" else (0.6, 100)
    edges = np.linspace(low - reach, high + reach, count + 1)
    base = clipped(law.numpyro(*law.at), low, high)
    probs = np.asarray(jax.jit(lambda: base.perturbed_cells(noise, edges, scale))())
    some = np.linspace(0, count, 6).astype(int)
    expected = reference_cdf(law, SCIPY[noise](0, scale), edges[some])
    np.testing.assert_allclose(np.cumsum(probs)[some], expected, atol=law.accuracy)
    assert float(probs.sum()) == pytest.approx(1, abs=law.accuracy)
    assert np.all(probs >= 0)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", ["normal", "exponential", "gamma, singular", "poisson"])
def test_densities_of_reports_are_the_derivative_of_the_cdf(name, noise):
    """Away from the kinks that Laplace noise puts at the bounds, and at whole numbers."""
    law, step = LAWS[name], 4e-3
    scale, at = 0.2, law.bounds[0] + np.array([-0.3, 0.3, 0.62, 1.3])
    shifts = step * np.arange(-4, 5)
    table = np.array([reference_cdf(law, SCIPY[noise](0, scale), z + shifts) for z in at])
    slopes = np.array([derivative(lambda t, row=row: row[4 + round(t / step)], step) for row in table])
    perturbed = Perturbed(law.numpyro(*law.at), law.bounds, NOISES[noise](scale))
    found = np.exp(np.asarray(jax.jit(perturbed.log_prob)(jnp.asarray(at))))
    np.testing.assert_allclose(found, slopes, rtol=3e-6)


# Parameters with mass beyond the bounds, from hardly any to all.
BEYOND = {
    "normal": [(-5.0, 0.5), (3.0, 0.2), (0.5, 30.0)],
    "exponential, steep": [(0.5,), (8.0,)],
    "log-normal": [(-5.0, 0.5), (2.0, 0.1), (0.1, 3.0)],
    "gamma, far from zero": [(400, 133.0), (2500, 2500.0), (50, 9.6), (0.3, 0.15), (400, 0.4), (3, 1 / 300)],
    "weibull": [(0.5, 0.7), (3.0, 2.0)],
    "logistic": [(-5, 0.1), (3, 0.01), (-0.1, 0.2), (0.4, 3)],
    "poisson": [(0.2,), (30.0,)],
    "geometric": [(0.5,), (1e-3,)],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BEYOND)
def test_atoms_and_their_gradients_match_the_cdf(name):
    law = LAWS[name]
    low, high = law.bounds

    def both(row):
        return jnp.exp(jnp.stack(clipped(law.numpyro(*row), low, high).log_atoms()))

    def shares(row):
        true = law.scipy(*row)
        return np.array([true.cdf(low), true.sf(high - (name in WHOLE))])

    compiled = jax.jit(lambda row: (both(row), jax.jacfwd(both)(row)))
    for row in np.array(BEYOND[name], float):
        mass, slope = compiled(row)
        np.testing.assert_allclose(mass, shares(row), rtol=0, atol=1e-9)
        for index, unit in enumerate(np.eye(len(row))):
            step = 1e-3 * abs(row[index])
            expected = [derivative(lambda t, i=i: shares(row + t * unit)[i], step) for i in (0, 1)]  # noqa: B023
            np.testing.assert_allclose(slope[:, index], expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    "name", ["normal", "normal, narrow", "exponential", "gamma, far from zero", "beta, singular", "geometric"]
)
def test_moments_and_equal_cells_match_the_cdf(name):
    """Secure sums: E[uᵏ] is 1 less the integral of k uᵏ⁻¹ F, with the bounds at −1 and 1."""
    law = LAWS[name]
    low, high = law.bounds
    base, true = clipped(law.numpyro(*law.at), low, high), law.scipy(*law.at)
    x, w = nodes_of(law, np.zeros(0))
    u, weights = (2 * x - low - high) / (high - low), 2 * w / (high - low)
    expected = [1 - np.sum(weights * k * u ** (k - 1) * true.cdf(x)) for k in range(1, 5)]
    np.testing.assert_allclose(signed_moments(base), expected, atol=1e-8)
    if name not in WHOLE:
        inner = true.cdf(np.linspace(low, high, 11)[1:-1])
        np.testing.assert_allclose(base.cell_masses(10), np.diff([0, *inner, 1]), atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1e-9, 0.4999, 0.5001, 3.0])
def test_tilted_masses_match_quadrature(width):
    with mp.workdps(40):
        for left, tilt in product([-30.0, -2.0, -width / 2, -width, 0.0, 5.0], [-50.0, -1.0, 0.0, 3.0]):
            edges = jnp.array([left, left + width])
            found = jax.jit(tilted_gaussian_masses)(
                edges, jnp.zeros(1), jnp.ones(1), tilt, jnp.array([left])
            )[0]
            m, exact_width = mp.mpf(left), mp.mpf(float(edges[1])) - mp.mpf(left)
            nodes = [k * exact_width / 8 for k in range(9)]
            relative = mp.quad(lambda x, t=tilt, m=m: mp.exp((t - m) * x - x**2 / 2), nodes)
            assert float(found) == pytest.approx(float(relative * mp.npdf(m)), rel=1e-10, abs=1e-300)
