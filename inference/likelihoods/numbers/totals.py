"""Likelihood of a secure sum of one-hot vectors: exact counts, plus one central Gaussian noise."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import validate_sample

from inference.likelihoods.numbers.base import ClippedLaw


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
    """Probabilities (..., cells) of equal cells between a law's bounds, point masses in the outer ones.

    They sum to one, whatever a quadrature missed.
    """
    inside = base.tilted_masses(equal_edges(base, cells), 0.0, jnp.zeros(cells))
    log_low, log_high = base.log_atoms()
    masses = inside.at[..., 0].add(jnp.exp(log_low)).at[..., -1].add(jnp.exp(log_high))
    return masses / masses.sum(-1, keepdims=True)


def equal_edges(base: ClippedLaw, cells: int) -> Array:
    """Edges (cells + 1,) of equal cells between a law's bounds."""
    return jnp.asarray(base.low + (base.high - base.low) * np.linspace(0.0, 1.0, cells + 1))
