"""Likelihoods of secure sums: exact sums over people, plus one central Gaussian noise.

Of one-hot vectors the sums are counts; of a number and its square they are moments of clipped laws.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import MultivariateNormal

from inference.likelihoods.choices.support_counts import SupportCounts, bit_sums
from inference.likelihoods.numbers.clipped import ClippedLaw


def noisy_counts(probs: Array, total_count: ArrayLike, noise_sd: ArrayLike) -> SupportCounts:
    """Return the law of one-hot vectors of `total_count` people, summed, plus Normal(0, noise_sd) on each."""
    return bit_sums(probs, 1.0, 0.0, total_count, jnp.asarray(noise_sd) ** 2)


def noisy_moments(
    moments: Array, total_count: ArrayLike, noise_sd: ArrayLike, square_weight: float
) -> MultivariateNormal:
    """Return the law of (u, w u²) of `total_count` people, summed, plus Normal(0, noise_sd) on both.

    The sums are taken as normal, with their exact means and covariance.

    Args:
        moments: E[uᵏ], k = 1 … 4, of one person's u, shape (..., 4).
        total_count: how many people.
        noise_sd: of the noise.
        square_weight: w.
    """
    first, second, third, fourth = jnp.moveaxis(jnp.asarray(moments), -1, 0)
    n, w = jnp.asarray(total_count, first.dtype), square_weight
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
