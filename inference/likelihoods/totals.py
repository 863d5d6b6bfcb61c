"""Likelihoods of a secure sum: exact statistics of all devices, plus one central Gaussian noise."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import validate_sample

from .base import ClippedLaw

# Cells over which a clipped law's moments are summed: each cell's mass is exact, and a cell of width h
# adds h²/12 to the square of its middle. At 512 cells the moments are good to about 1e-8.
CELLS = 512


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
    """Probabilities (..., cells) of equal cells of [0, 1], the point masses in the outer ones."""
    edges = jnp.linspace(0.0, 1.0, cells + 1)
    inside = base.tilted_masses(edges, 0.0, jnp.zeros(cells))
    log_low, log_high = base.log_atoms()
    return inside.at[..., 0].add(jnp.exp(log_low)).at[..., -1].add(jnp.exp(log_high))


def signed_moments(base: ClippedLaw) -> Array:
    """E[uᵏ], k = 1 … 4, shape (..., 4), of u = 2x − 1 for x from a law clipped to [0, 1]."""
    edges = jnp.linspace(-1.0, 1.0, CELLS + 1)
    middles, half = (edges[1:] + edges[:-1]) / 2, 1.0 / CELLS
    inside = base.tilted_masses((edges + 1) / 2, 0.0, jnp.zeros(CELLS))
    # Means of uᵏ over a cell as if the density were flat in it.
    flat = [
        middles,
        middles**2 + half**2 / 3,
        middles**3 + middles * half**2,
        middles**4 + 2 * middles**2 * half**2 + half**4 / 5,
    ]
    log_low, log_high = base.log_atoms()
    low, high = jnp.exp(log_low), jnp.exp(log_high)
    powers = [jnp.sum(inside * term, -1) + high + (-1) ** (k + 1) * low for k, term in enumerate(flat)]
    return jnp.stack(powers, axis=-1)
