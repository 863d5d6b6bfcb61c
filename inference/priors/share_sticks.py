"""Shares with a Dirichlet law of small or unknown concentration, in coordinates of moderate width.

Under a concentration a far below one the logarithm of a share has an sd of 1/a: a sampler needs very long
paths, and shares become zero in floating point, where a Dirichlet's density is not finite. Here sticks are
broken off in a given order, and the logit of each one's part is x = y + y³: where reports tell a share y is
as good as x, a tail of length 1/a in x has that of its cube root in y, and the density, that of the logits,
stays finite.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.nn import log_sigmoid
from jax.scipy.special import betaln
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import validate_sample


class ShareSticks(Distribution):
    """Coordinates y (k − 1,) of shares (k,) ~ Dirichlet(concentration), in the order of breaking."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}  # noqa: RUF012
    support = constraints.real_vector

    def __init__(self, concentration: ArrayLike, *, validate_args: bool | None = None) -> None:
        self.concentration = jnp.asarray(concentration)
        super().__init__((), (self.concentration.shape[-1] - 1,), validate_args=validate_args)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        shape = (*sample_shape, self.concentration.shape[-1])
        return coordinates_of(jax.random.loggamma(key, jnp.broadcast_to(self.concentration, shape)))

    @validate_sample
    def log_prob(self, value: Any, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        y = jnp.asarray(value)
        x, own = y + y**3, self.concentration[..., :-1]
        later = jnp.cumsum(self.concentration[..., ::-1], -1)[..., ::-1][..., 1:]
        # Each part is Beta(own, later).
        slope = jnp.log1p(3 * y**2)
        return jnp.sum(own * log_sigmoid(x) + later * log_sigmoid(-x) - betaln(own, later) + slope, -1)


def shares_of(y: Array) -> Array:
    """Shares (..., k) of coordinates (..., k − 1), in the order of breaking; the smallest may be zero."""
    x = y + y**3
    left = jnp.cumsum(log_sigmoid(-x), -1)
    before = jnp.concatenate([jnp.zeros_like(left[..., :1]), left[..., :-1]], -1)
    return jnp.exp(jnp.concatenate([log_sigmoid(x) + before, left[..., -1:]], -1))


def coordinates_of(log_shares: Array) -> Array:
    """Coordinates (..., k − 1) of the logarithms of shares (..., k), which need not add up to one."""
    after = jax.lax.cumlogsumexp(log_shares, axis=log_shares.ndim - 1, reverse=True)[..., 1:]
    # The one real root of y³ + y = x.
    return 2 / jnp.sqrt(3.0) * jnp.sinh(jnp.arcsinh(1.5 * jnp.sqrt(3.0) * (log_shares[..., :-1] - after)) / 3)
