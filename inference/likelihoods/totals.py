"""Likelihoods of a secure sum: exact statistics of all devices, plus one central Gaussian noise."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import validate_sample

from .base import ClippedLaw
from .discrete import ClippedDiscrete

# Simpson's rule over so many intervals: moments to 1e-7 for an sd of a fiftieth of the bounds or more.
INTERVALS = 256


class NoisyCounts(Distribution):
    """One-hot vectors of `total_count` people, summed, plus Normal(0, noise_sd) on each coordinate; O(k).

    `probs` (..., k) is the law of one person's choice; values are real vectors (..., k). The multinomial is
    taken as normal: mean n θ, covariance n (diag θ − θθ') + τ² I, diagonal minus rank one (METHODS 3.2).
    """

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.simplex,
        "total_count": constraints.nonnegative,
        "noise_sd": constraints.positive,
    }
    support = constraints.real_vector

    def __init__(
        self,
        probs: ArrayLike,
        total_count: ArrayLike,
        noise_sd: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.probs = jnp.asarray(probs)
        self.total_count = jnp.asarray(total_count, self.probs.dtype)
        self.noise_sd = jnp.asarray(noise_sd, self.probs.dtype)
        shape = jnp.broadcast_shapes(self.probs.shape[:-1], self.total_count.shape, self.noise_sd.shape)
        super().__init__(shape, self.probs.shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Array:
        return self.total_count[..., None] * self.probs

    @property
    def variance(self) -> Array:
        return self.mean * (1 - self.probs) + self.noise_sd[..., None] ** 2

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        shape = self.shape(sample_shape)
        counts_key, noise_key = jax.random.split(key)
        total = jnp.broadcast_to(self.total_count, shape[:-1])
        counts = jax.random.multinomial(counts_key, total, jnp.broadcast_to(self.probs, shape))
        return jnp.asarray(counts + self.noise_sd[..., None] * jax.random.normal(noise_key, shape))

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        noise = self.noise_sd[..., None] ** 2
        diagonal = self.mean + noise
        residual = jnp.asarray(value) - self.mean
        # 1 − n θ' D⁻¹ θ, without its cancellation: the shares sum to one.
        remainder = jnp.sum(self.probs * noise / diagonal, -1)
        along = jnp.sum(residual * self.probs / diagonal, -1)
        quadratic = jnp.sum(residual**2 / diagonal, -1) + self.total_count * along**2 / remainder
        log_det = jnp.log(2 * jnp.pi * diagonal).sum(-1) + jnp.log(remainder)
        return -(quadratic + log_det) / 2


def cell_masses(base: ClippedLaw, cells: int) -> Array:
    """Probabilities (..., cells) of equal cells between a law's bounds, point masses in the outer ones."""
    inside = base.tilted_masses(_edges(base, cells), 0.0, jnp.zeros(cells))
    log_low, log_high = base.log_atoms()
    return inside.at[..., 0].add(jnp.exp(log_low)).at[..., -1].add(jnp.exp(log_high))


def signed_moments(base: ClippedLaw) -> Array:
    """E[uᵏ], k = 1 … 4, shape (..., 4), of a clipped law whose bounds are u = −1 and u = 1.

    A sum for laws on the whole numbers; else 1 − ∫ k uᵏ⁻¹ P(U ≤ u) du, by Simpson's rule on exact
    probabilities.
    """
    powers = np.arange(1, 5)[:, None]
    if isinstance(base, ClippedDiscrete):
        points, log_probs = base.points()
        scaled = (2 * points - base.low - base.high) / (base.high - base.low)
        return jnp.sum(scaled**powers * jnp.exp(log_probs)[..., None, :], -1)
    inside = base.tilted_masses(_edges(base, INTERVALS), 0.0, jnp.zeros(INTERVALS))
    low = jnp.exp(base.log_atoms()[0])[..., None]
    below = jnp.concatenate([low, low + jnp.cumsum(inside, -1)], axis=-1)
    scaled = np.linspace(-1.0, 1.0, INTERVALS + 1)
    simpson = np.full(INTERVALS + 1, 2.0)
    simpson[1::2], simpson[[0, -1]] = 4.0, 1.0
    weights = simpson * 2 / (3 * INTERVALS)
    return 1 - jnp.sum(powers * weights * scaled ** (powers - 1) * below[..., None, :], -1)


def _edges(base: ClippedLaw, cells: int) -> Array:
    return jnp.asarray(base.low + (base.high - base.low) * np.linspace(0.0, 1.0, cells + 1))
