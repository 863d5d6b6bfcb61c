"""Laws whose mass, or a part of it, lies beyond the bounds: atoms, densities and gradients."""

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
    ClippedContinuous,
    ClippedNormal,
    GaussianNoise,
    LaplaceNoise,
    Perturbed,
    clipped,
)
from inference.likelihoods.numbers.totals import cell_masses

NOISES = {"laplace": LaplaceNoise(0.7), "gaussian": GaussianNoise(0.7)}
AT = np.array([-2.0, -0.4, 0.3, 0.8, 1.7])


def atoms_of(law, parameters, low=0.0, high=1.0):
    """Masses at both bounds, and their derivatives by each parameter: (2,) and (2, parameters) a row."""

    def both(row):
        return jnp.exp(jnp.stack(ClippedContinuous(law(*row), low, high).log_atoms()))

    rows = jnp.asarray(parameters)
    return jax.jit(jax.vmap(lambda row: (both(row), jax.jacfwd(both)(row))))(rows)


def slope_of(share, row, index):
    """Derivative of a SciPy law's share by one of its parameters."""

    def moved(step):
        return share(*(value + step * (place == index) for place, value in enumerate(row)))

    return derivative(moved, 1e-3 * abs(row[index]))


# name: (NumPyro's law, SciPy's, bounds, rows of parameters beyond the lower, the upper bound, and wide ones)
FAMILIES = {
    "student": (
        dist.StudentT,
        lambda df, loc, scale: stats.t(df, loc, scale),
        (0.0, 1.0),
        [
            (5, -1, 0.1),
            (5, -5, 0.5),
            (5, -0.3, 0.02),
            (3, -4, 0.001),
            (5, 5, 0.1),
            (4, 2, 0.01),
            (2, 0.5, 30),
        ],
    ),
    "gamma": (
        lambda shape, mean: dist.Gamma(shape, shape / mean),
        lambda shape, mean: stats.gamma(shape, scale=mean / shape),
        (5.0, 6.0),
        [(400, 3), (100, 3), (2500, 1), (50, 5.2), (0.3, 2), (400, 1000), (3, 900)],
    ),
    "logistic": (dist.Logistic, stats.logistic, (0.0, 1.0), [(-5, 0.1), (2, 0.01), (0.4, 3)]),
    "gumbel": (dist.Gumbel, stats.gumbel_r, (0.0, 1.0), [(-5, 0.1), (3, 0.01), (-0.1, 0.2), (0.4, 3)]),
    "cauchy": (dist.Cauchy, stats.cauchy, (0.0, 1.0), [(-5, 0.1), (3, 0.01), (0.4, 3)]),
    "laplace": (dist.Laplace, stats.laplace, (0.0, 1.0), [(-5, 0.1), (3, 0.01), (0.4, 3)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_atoms_and_their_gradients_match_the_cdf(name):
    law, reference, (low, high), rows = FAMILIES[name]
    rows = [tuple(map(float, row)) for row in rows]
    masses, slopes = atoms_of(law, rows, low, high)
    for row, mass, slope in zip(rows, masses, slopes):
        true = reference(*row)
        np.testing.assert_allclose(mass, [true.cdf(low), true.sf(high)], rtol=0, atol=1e-9)
        for index in range(len(row)):
            below = slope_of(lambda *p: reference(*p).cdf(low), row, index)
            above = slope_of(lambda *p: reference(*p).sf(high), row, index)
            np.testing.assert_allclose(slope[:, index], [below, above], rtol=1e-5, atol=1e-8)


def test_density_of_law_far_below_bounds_is_noise_at_bound():
    """Gumbel(-5, 0.1) is above zero with a probability of only 1e-22."""
    law = Perturbed(dist.Gumbel(-5.0, 0.1), (0.0, 1.0), LaplaceNoise(1.0))
    found = jax.jit(law.log_prob)(jnp.array([-1.0, 2.0]))
    np.testing.assert_allclose(np.exp(found), np.exp([-1.0, -2.0]) / 2, rtol=1e-8)


@pytest.mark.slow
def test_likelihood_is_flat_for_laws_beyond_a_bound():
    """The reports do not tell how far beyond the bound the law is."""
    reports = np.array([-0.9, -0.1, 0.4])

    def total(mean):
        law = dist.StudentT(5.0, mean, 0.1)
        return 2000 * Perturbed(law, (0.0, 1.0), LaplaceNoise(0.5)).log_prob(reports).mean()

    means = np.array([-0.8, -1.2, -2.0, -4.0])
    found, slopes = jax.jit(jax.vmap(jax.value_and_grad(total)))(means)
    shares = stats.t(5, means, 0.1).cdf(0)
    # All at the bound, but for the share that is not.
    np.testing.assert_allclose(found, found[-1], rtol=0, atol=2000 * 4 * (1 - shares[0]))
    assert np.max(np.abs(slopes)) < 5


def outside(family):
    """Half of the law lies narrowly beyond the lower bound, a quarter beyond the upper one."""
    parts = family(jnp.array([-3.0, 0.5, 4.0]), jnp.array([0.05, 0.1, 0.01]))
    return dist.MixtureSameFamily(dist.Categorical(probs=jnp.array([0.5, 0.25, 0.25])), parts)


MIXTURES = {
    "normals": lambda: outside(dist.Normal),
    "of several families": lambda: dist.MixtureGeneral(
        dist.Categorical(probs=jnp.array([0.5, 0.25, 0.25])),
        [dist.Gumbel(-3.0, 0.05), dist.Normal(0.5, 0.1), dist.Logistic(4.0, 0.01)],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures_with_components_beyond_bounds_are_exact(name, noise):
    noise, law = NOISES[noise], MIXTURES[name]()
    kernel = type(noise).__mro__[1](0.0, noise.scale)
    inside = Perturbed(ClippedNormal(0.5, 0.1), (0.0, 1.0), noise)
    ends = jax.jit(lambda: [kernel.log_prob(AT), inside.log_prob(AT), kernel.log_prob(AT - 1)])()
    expected = np.array([0.5, 0.25, 0.25]) @ np.exp(np.asarray(ends))
    edges = np.linspace(-4.5, 5.5, 41)
    perturbed, counted = Perturbed(law, (0.0, 1.0), noise), BinnedPerturbed(clipped(law), noise, edges, 1)
    found, binned = jax.jit(lambda: (perturbed.log_prob(AT), counted.cell_probs))()
    np.testing.assert_allclose(np.exp(found), expected, rtol=0, atol=1e-8)
    cells = jax.jit(lambda loc, scale: noise.cell_probs(ClippedNormal(loc, scale), edges))
    parts = [cells(*part) for part in [(-3.0, 0.05), (0.5, 0.1), (4.0, 0.01)]]
    np.testing.assert_allclose(binned, np.array([0.5, 0.25, 0.25]) @ np.asarray(parts), rtol=0, atol=1e-8)


def test_atoms_of_mixture_without_closed_form_are_exact():
    law = outside(lambda loc, scale: dist.StudentT(4.0, loc, scale))
    parts = [stats.t(4, -3, 0.05), stats.t(4, 0.5, 0.1), stats.t(4, 4, 0.01)]
    masses = np.exp(np.asarray(jax.jit(lambda: clipped(law).log_atoms())()))
    weights = np.array([0.5, 0.25, 0.25])
    expected = [weights @ [part.cdf(0) for part in parts], weights @ [part.sf(1) for part in parts]]
    np.testing.assert_allclose(masses, expected, rtol=0, atol=1e-9)


def test_mass_missed_by_quadrature_is_not_put_on_bounds():
    """Quadrature misjudges the mass of a law of sd 1e-4: it is normalised, with no answer at a bound."""
    base = ClippedContinuous(dist.StudentT(5.0, 0.5003, 1e-4))
    law = Perturbed(base, (0.0, 1.0), LaplaceNoise(0.7))
    error, atoms, log_density = jax.jit(lambda: (base.mass_error, base.log_atoms(), law.log_prob(AT)))()
    assert abs(error) > 0.1
    assert np.exp(max(atoms)) < 1e-9
    density = np.exp(log_density)
    np.testing.assert_allclose(density, stats.laplace(0.5003, 0.7).pdf(AT), rtol=0.01)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_float32_gradients_are_finite_for_any_location():
    def log_prob(loc, log_scale):
        law = outside(lambda at, scale: dist.StudentT(4.0, at + loc, scale * jnp.exp(log_scale)))
        return Perturbed(law, (0.0, 1.0), LaplaceNoise(0.7)).log_prob(AT.astype(np.float32)).sum()

    with jax.enable_x64(False):
        locs = jnp.asarray([-1e3, -3.0, 0.0, 40.0, 1e3], jnp.float32)
        scales = jnp.asarray([-3.0, 0.0, 3.0, 9.0, 0.0], jnp.float32)
        value, slopes = jax.jit(jax.vmap(jax.value_and_grad(log_prob, (0, 1))))(locs, scales)
        assert np.all(np.isfinite(value))
        assert np.all(np.isfinite(slopes))


def test_cells_of_too_narrow_law_sum_to_one():
    """Almost none of the mass is at the bounds."""
    masses = jax.jit(lambda: cell_masses(ClippedContinuous(dist.StudentT(5.0, 0.5003, 1e-4)), 16))()
    assert float(masses.sum()) == pytest.approx(1, abs=1e-12)
    assert max(masses[0], masses[-1]) < 1e-6
