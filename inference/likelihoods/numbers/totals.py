"""Likelihoods of secure sums: exact sums over people, plus one central Gaussian noise.

Of one-hot vectors the sums are counts; of a number and its square they are moments of clipped laws.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import validate_sample

from inference.likelihoods.choices.support_counts import SupportCounts, bit_sums
from inference.likelihoods.numbers.clipped import ClippedLaw


def noisy_counts(probs: Array, total_count: ArrayLike, noise_sd: ArrayLike) -> SupportCounts:
    """Return the law of one-hot vectors of `total_count` people, summed, plus Normal(0, noise_sd) on each."""
    return bit_sums(probs, 1.0, 0.0, total_count, jnp.asarray(noise_sd) ** 2)


class NoisyMoments(Distribution):
    """(u, w u²) of `total_count` people, summed, plus Normal(0, noise_sd) on both; w is `square_weight`.

    `moments` (..., 4) are E[uᵏ], k = 1 … 4, of one person's u; values are (..., 2). The sums are taken as
    normal, with their exact means and covariance.
    """

    arg_constraints = {  # noqa: RUF012
        "moments": constraints.real_vector,
        "total_count": constraints.nonnegative,
        "noise_sd": constraints.positive,
        "square_weight": constraints.positive,
    }
    support = constraints.real_vector

    def __init__(
        self,
        moments: ArrayLike,
        total_count: ArrayLike,
        noise_sd: ArrayLike,
        square_weight: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.moments = jnp.asarray(moments)
        dtype = self.moments.dtype
        self.total_count, self.noise_sd = jnp.asarray(total_count, dtype), jnp.asarray(noise_sd, dtype)
        self.square_weight = jnp.asarray(square_weight, dtype)
        others = (self.total_count.shape, self.noise_sd.shape, self.square_weight.shape)
        shape = jnp.broadcast_shapes(self.moments.shape[:-1], *others)
        super().__init__(shape, (2,), validate_args=validate_args)

    @property
    def mean(self) -> Array:
        first, second = self.moments[..., 0], self.moments[..., 1]
        return self.total_count[..., None] * jnp.stack([first, self.square_weight * second], -1)

    @property
    def variance(self) -> Array:
        of_number, _, of_square = self._covariance
        return jnp.stack([of_number, of_square], -1)

    @property
    def _covariance(self) -> tuple[Array, Array, Array]:
        """Variance of the first sum, covariance, variance of the second."""
        first, second, third, fourth = jnp.moveaxis(self.moments, -1, 0)
        n, weight, noise = self.total_count, self.square_weight, self.noise_sd**2
        cross = n * weight * (third - first * second)
        return n * (second - first**2) + noise, cross, n * weight**2 * (fourth - second**2) + noise

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        of_number, cross, of_square = self._covariance
        white = jax.random.normal(key, self.shape(sample_shape))
        along = jnp.sqrt(of_number) * white[..., 0]
        rest = jnp.sqrt(of_square - cross**2 / of_number) * white[..., 1]
        return self.mean + jnp.stack([along, cross / of_number * along + rest], -1)

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        """By the first sum, and the second given it: no matrix to factor."""
        del intermediates
        of_number, cross, of_square = self._covariance
        number, square = jnp.moveaxis(jnp.asarray(value) - self.mean, -1, 0)
        left = square - cross / of_number * number
        of_left = of_square - cross**2 / of_number
        quadratic = number**2 / of_number + left**2 / of_left
        return -(quadratic + jnp.log(of_number) + jnp.log(of_left)) / 2 - jnp.log(2 * jnp.pi)


def signed_moments(base: ClippedLaw) -> Array:
    """E[uᵏ], k = 1 … 4, shape (..., 4), of a clipped law whose bounds are u = −1 and u = 1."""
    points, log_masses = base.points()
    scaled = (2 * points - base.low - base.high) / (base.high - base.low)
    return jnp.sum(scaled[..., None, :] ** np.arange(1, 5)[:, None] * jnp.exp(log_masses)[..., None, :], -1)
