"""A secure sum's total, its law, and a warning if its normal approximation is poor.

The law is of exact sums over people, plus one central Gaussian noise. Sums of one-hot vectors are counts.
Sums of a number and its square are moments of clipped laws.
"""

from typing import cast

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray
from numpyro.distributions import MultivariateNormal

from inference.likelihoods import ClippedLaw
from inference.likelihoods.choices.counts import SupportCounts, bit_sums
from ldp_client import Mechanism
from ldp_client.mechanisms.summed_gaussian import SQUARE_BOTTOM, SQUARE_TOP, SummedMechanism
from summaries import QuestionSummary

SQUARE_WEIGHT = SQUARE_TOP / SQUARE_BOTTOM
# A smaller expected count is not near enough to normal if the noise is small compared with it.
FEWEST_EXPECTED = 10.0


def total_of(mechanism: Mechanism, summary: QuestionSummary) -> tuple[int, float, NDArray[np.float64]]:
    """Return n, the total noise's sd and the values; sd and values in units of the statistic."""
    summed = cast(SummedMechanism, mechanism)
    return summary.n, summed.noise_sd * np.sqrt(max(summary.n, 1)), summary.values / summed.grid


def approximation_notes(n: int, noise_sd: float, values: NDArray[np.float64]) -> tuple[str, ...]:
    """Return a warning if some counts are too small for a normal law and the noise does not hide that."""
    if noise_sd**2 >= FEWEST_EXPECTED or values.min() >= FEWEST_EXPECTED or n == 0:
        return ()
    return ("some choices have few people and little noise: their intervals are approximate",)


def noisy_counts(probs: Array, total_count: ArrayLike, noise_sd: ArrayLike) -> SupportCounts:
    """Return the law of one-hot vectors of `total_count` people, summed, plus Normal(0, noise_sd) on each."""
    return bit_sums(probs, 1.0, 0.0, total_count, jnp.asarray(noise_sd) ** 2)


def noisy_moments(moments: Array, total_count: ArrayLike, noise_sd: ArrayLike) -> MultivariateNormal:
    """Return the law of (u, w u²) of `total_count` people, summed, plus Normal(0, noise_sd) on both.

    The sums are taken as normal, with their exact means and covariance. w is SQUARE_WEIGHT.

    Args:
        moments: E[uᵏ], k = 1 … 4, of one person's u, shape (..., 4).
        total_count: how many people.
        noise_sd: of the noise.
    """
    first, second, third, fourth = jnp.moveaxis(jnp.asarray(moments), -1, 0)
    n, w = jnp.asarray(total_count, first.dtype), SQUARE_WEIGHT
    mean = n * jnp.stack([first, w * second], -1)
    cross = w * (third - first * second)
    rows = [[second - first**2, cross], [cross, w**2 * (fourth - second**2)]]
    covariance = n * jnp.stack([jnp.stack(row, -1) for row in rows], -2)
    return MultivariateNormal(mean, covariance + jnp.asarray(noise_sd) ** 2 * jnp.eye(2))


def signed_moments(base: ClippedLaw) -> Array:
    """E[uᵏ], k = 1 … 4, shape (..., 4), of a clipped law whose bounds are u = −1 and u = 1."""
    points, log_masses = base.points()
    scaled = (2 * points - base.low - base.high) / (base.high - base.low)
    return jnp.sum(scaled[..., None, :] ** np.arange(1, 5)[:, None] * jnp.exp(log_masses)[..., None, :], -1)
