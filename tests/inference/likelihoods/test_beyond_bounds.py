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
    ClippedContinuous,
)


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
    "logistic": (dist.Logistic, stats.logistic, (0.0, 1.0), [(-5, 0.1), (3, 0.01), (-0.1, 0.2), (0.4, 3)]),
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
