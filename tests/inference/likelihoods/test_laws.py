"""Perturbed numbers of any law under both noises, against integrals over the law's cdf, and sums."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from likelihood_references import derivative
from scipy import stats

from inference.likelihoods import (
    BinnedPerturbed,
    ClippedDiscrete,
    GaussianNoise,
    LaplaceNoise,
    Perturbed,
    clipped,
)

NOISES = {"laplace": LaplaceNoise, "gaussian": GaussianNoise}


# name: (NumPyro law, SciPy's, accuracy of the likelihood)
LAWS = {
    "normal": (lambda: dist.Normal(0.4, 0.07), stats.norm(0.4, 0.07), 1e-10),
    "exponential": (lambda: dist.Exponential(6.0), stats.expon(scale=1 / 6), 1e-10),
    "log-normal": (lambda: dist.LogNormal(-1.0, 0.5), stats.lognorm(0.5, scale=np.exp(-1)), 1e-9),
    "gamma singular": (lambda: dist.Gamma(0.3, 3.0), stats.gamma(0.3, scale=1 / 3), 1e-8),
    "weibull": (lambda: dist.Weibull(0.5, 0.7), stats.weibull_min(0.7, scale=0.5), 1e-8),
    "beta singular": (lambda: dist.Beta(0.2, 0.4), stats.beta(0.2, 0.4), 1e-8),
    "student": (lambda: dist.StudentT(3.0, 0.3, 0.2), stats.t(3, 0.3, 0.2), 1e-9),
}


@pytest.mark.parametrize(
    "law",
    [
        dist.Delta(0.4),
        dist.MixtureSameFamily(dist.Categorical(jnp.ones(2) / 2), dist.Normal(jnp.zeros(2), 1.0)),
    ],
    ids=["delta", "mixture"],
)
def test_law_that_quadrature_cannot_integrate_is_rejected(law):
    with pytest.raises(ValueError, match="with one peak"):
        Perturbed(law, (0.0, 1.0), LaplaceNoise(1.0))


def kernel(name, scale):
    """Density and cdf of the noise."""
    if name == "gaussian":
        return stats.norm(0, scale).pdf, stats.norm(0, scale).cdf
    return stats.laplace(0, scale).pdf, stats.laplace(0, scale).cdf


def reference_cdf(law, at, noise, scale):
    """P(clip(X, 0, 1) + noise <= z) = K(z - 1) + integral of F_X(x) k(z - x) dx, and F is bounded."""
    density, cdf = kernel(noise, scale)
    x, w = np.polynomial.legendre.leggauss(16)
    ends = 10.0 ** np.arange(-40, -1, 0.5)
    found = []
    for z in at:
        cuts = np.unique(np.clip([*np.linspace(0, 1, 401), *ends, *(1 - ends), z], 0, 1))
        left, width = cuts[:-1, None], np.diff(cuts)[:, None]
        nodes = left + width * (x + 1) / 2
        found.append(cdf(z - 1) + np.sum(width * w / 2 * law.cdf(nodes) * density(z - nodes)))
    return np.array(found)


def density_of(base, noise, scale, at):
    law = Perturbed(base, (0.0, 1.0), NOISES[noise](scale))
    return np.exp(np.asarray(jax.jit(law.log_prob)(jnp.asarray(at))))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "noise"),
    [
        *((name, "laplace") for name in LAWS),
        *((name, "gaussian") for name in ("normal", "beta singular")),
    ],
)
def test_cell_probabilities_match_integrals(name, noise):
    build, law, accuracy = LAWS[name]
    scale, reach, count = (1.0, 0.01, 256) if noise == "laplace" else (0.1, 0.6, 5)
    edges = np.linspace(-reach, 1 + reach, count + 1)
    probs = jax.jit(lambda: NOISES[noise](scale).cell_probs(clipped(build()), edges))()
    some = np.linspace(0, count, 6).astype(int)
    expected = reference_cdf(law, edges[some], noise, scale)
    np.testing.assert_allclose(np.cumsum(probs)[some], expected, atol=accuracy)
    assert float(probs.sum()) == pytest.approx(1, abs=accuracy)
    assert np.all(np.asarray(probs) > 0)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", ["normal", "gamma singular"])
def test_densities_of_reports_are_the_derivative_of_the_cdf(name, noise):
    """Away from the kinks that Laplace noise puts at the bounds and at no other place."""
    build, law, _ = LAWS[name]
    step = 4e-3
    scale, at = 0.2, np.array([-0.3, 0.3, 0.62, 1.3])
    shifts = step * np.arange(-4, 5)
    table = np.array([reference_cdf(law, z + shifts, noise, scale) for z in at])
    slopes = np.array([derivative(lambda t, row=row: row[4 + round(t / step)], step) for row in table])
    np.testing.assert_allclose(density_of(build(), noise, scale, at), slopes, rtol=3e-6)


WHOLE = {
    "poisson": (lambda: dist.Poisson(3.0), stats.poisson(3)),
    "poisson beyond": (lambda: dist.Poisson(1000.0), stats.poisson(1000)),
    "geometric": (lambda: dist.GeometricProbs(0.2), stats.geom(0.2, loc=-1)),
    "zero-inflated": (lambda: dist.ZeroInflatedPoisson(0.4, 2.0), None),
}


def masses_on_whole_numbers(name, low, high):
    inner = np.arange(low + 1, high)
    if name == "zero-inflated":
        law = stats.poisson(2)
        share = lambda x: 0.4 * (x >= 0) + 0.6 * law.cdf(x)  # noqa: E731
        return np.concatenate([[share(low)], 0.6 * law.pmf(inner), [1 - share(high - 1)]])
    law = WHOLE[name][1]
    return np.concatenate([[law.cdf(low)], law.pmf(inner), [law.sf(high - 1)]])


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", WHOLE)
def test_laws_of_whole_numbers_match_finite_sums(name, noise):
    low, high = 1, 8
    base = ClippedDiscrete(WHOLE[name][0](), low, high)
    at, masses = np.arange(low, high + 1), masses_on_whole_numbers(name, low, high)
    density, cdf = kernel(noise, 3.0)
    z = np.array([-20.0, 1.0, 2.6, 8.0, 30.0])
    law = Perturbed(base, (low, high), NOISES[noise](3.0))
    np.testing.assert_allclose(np.exp(law.log_prob(z)), density(z[:, None] - at) @ masses, rtol=1e-9)
    edges = np.linspace(-9, 18, 40)
    probs = np.asarray(BinnedPerturbed(base, NOISES[noise](3.0), edges, 1).cell_probs)
    np.testing.assert_allclose(np.cumsum(probs)[:-1], cdf(edges[:, None] - at) @ masses, atol=1e-10)
