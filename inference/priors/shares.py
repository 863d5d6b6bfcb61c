"""Coordinates for shares of many choices that suit a sampler: sticks broken off in a given order.

The order is by size. Breaking the largest shares off first makes the coordinates nearly independent: under a
Dirichlet prior they are exactly independent in any order, and a share that the reports determine well depends
only on its own coordinate and on those for larger shares.

Under a small or unknown concentration a the logarithm of a share has an sd of 1/a: a sampler needs very long
paths, and shares become zero in floating point, at which a Dirichlet's density is not finite. So the logit
of each stick's part is x = y + y³/12. A tail of length 1/a in x has the length of its cube root in y, and the
density, computed on logits, stays finite. With a larger cubic term, a uniform part would have two modes in y.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.nn import log_sigmoid
from jax.scipy.special import betaln
from jax.typing import ArrayLike
from numpy.typing import NDArray
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import validate_sample

# The weight of the cube in a logit.
CUBIC = 1 / 12


class ShareSticks(Distribution):
    """Coordinates y (k − 1,) of shares (k,) ~ Dirichlet(concentration), in the order of breaking."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}  # noqa: RUF012
    support = constraints.real_vector

    def __init__(self, concentration: ArrayLike) -> None:
        self.concentration = jnp.asarray(concentration)
        super().__init__((), (self.concentration.shape[-1] - 1,))

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        shape = (*sample_shape, self.concentration.shape[-1])
        return coordinates_of(jax.random.loggamma(key, jnp.broadcast_to(self.concentration, shape)))

    @validate_sample
    def log_prob(self, value: Any) -> Array:
        y = jnp.asarray(value)
        x, own = y + CUBIC * y**3, self.concentration[..., :-1]
        later = jnp.cumsum(self.concentration[..., ::-1], -1)[..., ::-1][..., 1:]
        # Each part is Beta(own, later).
        slope = jnp.log1p(3 * CUBIC * y**2)
        return jnp.sum(own * log_sigmoid(x) + later * log_sigmoid(-x) - betaln(own, later) + slope, -1)


def shares_of(y: Array) -> Array:
    """Return shares (..., k) of coordinates (..., k − 1), in breaking order; the smallest may be zero."""
    x = y + CUBIC * y**3
    left = jnp.cumsum(log_sigmoid(-x), -1)
    before = jnp.concatenate([jnp.zeros_like(left[..., :1]), left[..., :-1]], -1)
    return jnp.exp(jnp.concatenate([log_sigmoid(x) + before, left[..., -1:]], -1))


def coordinates_of(log_shares: Array) -> Array:
    """Return coordinates (..., k − 1) from log shares (..., k), which need not add up to one."""
    after = jax.lax.cumlogsumexp(log_shares, axis=log_shares.ndim - 1, reverse=True)[..., 1:]
    # The one real root y of CUBIC y³ + y = x.
    scale = jnp.sqrt(3 * CUBIC)
    return 2 / scale * jnp.sinh(jnp.arcsinh(1.5 * scale * (log_shares[..., :-1] - after)) / 3)


def breaking_order(shares: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the indices of shares by falling size, and the inverse permutation, (2, k)."""
    order = np.argsort(-shares, kind="stable")
    return np.stack([order, np.argsort(order)])
