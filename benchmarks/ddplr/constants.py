"""How much noise makes a holder's statistics (ε, δ)-private: as DDPLR's released code has it, and as it is.

Published: add/remove sensitivities, where the paper's Definition 2.1 exchanges a record, and a slip in the
search for the analytic Gaussian noise (METHODS 1.4). x is at most `x` long, |y| at most `y`.
"""

from collections.abc import Callable
from math import exp, log, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

Matrix = NDArray[np.float64]
Constants = Literal["published", "right"]


class Bounds(NamedTuple):
    """Largest norms of the features and the response."""

    x: float
    y: float


def right_sigma(epsilon: float, delta: float) -> float:
    """Noise sd over sensitivity of the analytic Gaussian mechanism (Balle & Wang 2018)."""

    def spent(log_mu: float) -> float:
        mu = exp(log_mu)
        return float(norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu)))

    return exp(-brentq(lambda log_mu: spent(log_mu) - delta, log(1e-6), log(1e3), xtol=1e-13))


def published_sigma(epsilon: float, delta: float) -> float:
    """The released code's value: √ε·u stands where √(εu) belongs."""
    root = sqrt(epsilon)
    at_zero = 0.5 - exp(epsilon) * float(norm.cdf(-2 * root))
    sign = 1.0 if delta >= at_zero else -1.0

    def spent(u: float) -> float:
        return float(norm.cdf(sign * root * u) - exp(epsilon) * norm.cdf(-sqrt(epsilon * (u + 2)))) - delta

    u = brentq(spent, 0.0, 100.0)
    return float((sqrt(1 + u / 2) - sign * sqrt(u / 2)) / sqrt(2 * epsilon))


def cross_sensitivity(bounds: Bounds) -> float:
    """Of (S, z), records exchanged: METHODS 1.1 without y², equal variances."""
    x, y = bounds
    plain = 2 * x**4 + x**2 * y**2
    turned = 2 * x**4 + 2 * x**2 * y**2 + y**4 / 2 if y**2 <= 2 * x**2 else 4 * x**2 * y**2
    return sqrt(max(plain, turned))


def squares_sensitivity(bounds: Bounds) -> float:
    """Of (S, z, u), records exchanged: METHODS 1.1, equal variances."""
    x, y = bounds
    worst = max(cross_sensitivity(bounds) ** 2, 2 * x**4 + x**2 * y**2 + y**4)
    if y**2 > 2 * x**2:
        w = (y - sqrt(y**2 - 2 * x**2)) / 2
        if w * y >= 2 * x**2:
            worst = max(worst, (y + w) ** 2 * (x**2 + (y - w) ** 2))
    return sqrt(worst)


def cross_noise(bounds: Bounds, features: int, budget: tuple[float, float], constants: Constants) -> Matrix:
    """Sds of the noise on (S, z), (p, p); yᵀy is not released."""
    x, y = bounds
    if constants == "right":
        gram = cross = right_sigma(*budget) * cross_sensitivity(bounds)
    else:
        gram = cross = published_sigma(*budget) * sqrt(x**4 + x**2 * y**2)
        # The code releases S and z apart, each with half of the budget, where that is less noise in all.
        half = published_sigma(budget[0] / 2, budget[1] / 2)
        if half**2 * (x**4 + (x * y) ** 2) <= gram**2:
            gram, cross = half * x**2, half * x * y
    noise = np.full((features + 1, features + 1), gram)
    noise[-1, :] = noise[:, -1] = cross
    noise[-1, -1] = np.inf
    return noise


def squares_noise(bounds: Bounds, features: int, budget: tuple[float, float], constants: Constants) -> Matrix:
    """Sds of the noise on (S, z, u), (p, p), as MCMC-B&S reads them."""
    x, y = bounds
    if constants == "right":
        sd = right_sigma(*budget) * squares_sensitivity(bounds)
    else:
        sd = published_sigma(*budget) * sqrt(x**4 + x**2 * y**2 + y**4)
    return np.full((features + 1, features + 1), sd)


def svec_noise(bounds: Bounds, features: int, budget: tuple[float, float], constants: Constants) -> Matrix:
    """Sds of the noise of `table_statistics`: isotropic on svec(vvᵀ), v = (x, y/√2) in units of the bounds.

    Its sensitivity is 3/√2 where records are exchanged (METHODS 1.3). With published constants: the largest
    norm of one record's svec(vvᵀ), 3/2, and the slip.
    """
    right = constants == "right"
    sd = right_sigma(*budget) * 3 / sqrt(2) if right else published_sigma(*budget) * 1.5
    scale = np.append(np.full(features, bounds.x), bounds.y * sqrt(2))
    return sd * np.outer(scale, scale) * np.where(np.eye(features + 1), 1, sqrt(0.5))


NoiseOf = Callable[[Bounds, int, tuple[float, float], Constants], Matrix]
