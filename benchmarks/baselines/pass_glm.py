"""PASS-GLM: a polynomial for the logistic log-likelihood (Huggins, Adams and Broderick 2017)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray


def pass_glm_coefficients(radius: float) -> NDArray[np.float64]:
    """b with b0 + b1 s + b2 s^2 the Chebyshev interpolant of log sigmoid(s) on [-radius, radius]."""

    def log_sigmoid(unit: Any) -> Any:
        return -np.logaddexp(0.0, -radius * unit)

    unit = np.polynomial.chebyshev.cheb2poly(np.polynomial.chebyshev.chebinterpolate(log_sigmoid, 2))
    return np.asarray(unit / radius ** np.arange(3))


def pass_glm_log_likelihood(
    intercept: ArrayLike,
    coefficients: ArrayLike,
    statistics: ArrayLike,
    total_count: ArrayLike,
    radius: float = 4.0,
) -> Array:
    """Approximate log-likelihood of logistic regression from S = sum v v', v = (1, x, y), y in {-1, 1}.

    coefficients (d,), statistics (d + 2, d + 2). It knows no noise: with noisy S it is the published
    baseline that overstates its certainty, and without a bound where S is indefinite.
    """
    b0, b1, b2 = pass_glm_coefficients(radius)
    slopes = jnp.concatenate([jnp.atleast_1d(jnp.asarray(intercept)), jnp.asarray(coefficients)])
    sums = jnp.asarray(statistics)
    linear = slopes @ sums[:-1, -1]
    quadratic = slopes @ sums[:-1, :-1] @ slopes
    return jnp.asarray(total_count * b0 + b1 * linear + b2 * quadratic)
