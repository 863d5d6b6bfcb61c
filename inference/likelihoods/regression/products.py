"""Signs of sampled products: their counts are exactly multinomial in the products' means."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import constraints

from inference.likelihoods.common import CellCounts

# Products between −1 and 1 have means between them. A model may try others: from here on, or from the gain
# where that is more, the signs' law bends, so that it stays one and leads back.
BEND = 0.98


class ProductSigns(CellCounts):
    """Counts of negative and positive signs of each product, side by side; exact.

    A report is on product s with probability shares_s, and positive then with probability
    (1 + gain means_s) / 2, whatever law the products have. Values are integer vectors (..., 2 T) that sum to
    `total_count`.

    Args:
        means: of each product over all people, between −1 and 1, shape (..., T).
        shares: probability that a report is on each product, shape (..., T).
        gain: 2 p − 1 where the true sign is sent with probability p, shape (...).
        total_count: how many reports, shape (...).
        validate_args: whether NumPyro checks arguments and values.
    """

    arg_constraints = {**CellCounts.arg_constraints, "shares": constraints.simplex}  # noqa: RUF012
    pytree_data_fields = ("means", "shares", "gain", "total_count")

    def __init__(
        self,
        means: ArrayLike,
        shares: ArrayLike,
        gain: ArrayLike,
        total_count: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.means, self.shares = jnp.asarray(means), jnp.asarray(shares)
        self.gain, self.total_count = jnp.asarray(gain), total_count
        shape = jnp.broadcast_shapes(
            self.means.shape[:-1], self.shares.shape[:-1], jnp.shape(gain), jnp.shape(total_count)
        )
        super().__init__(shape, (2 * self.means.shape[-1],), validate_args=validate_args)

    @property
    def log_cell_probs(self) -> Array:
        told = self.gain[..., None] * self.means
        bend = jnp.maximum(BEND, self.gain)[..., None]
        log_signs = jnp.stack([_log_half(told, bend), _log_half(-told, bend)], axis=-1)
        log_signs = log_signs + jnp.log(self.shares)[..., None]
        return log_signs.reshape(*log_signs.shape[:-2], -1)


def _log_half(told: Array, bend: Array) -> Array:
    """log((1 − s) / 2), s = told within ±bend, beyond ±(bend + (1 − bend) tanh(excess / (1 − bend)))."""
    left = 1 - bend
    above, below = (jnp.maximum(sign * told - bend, 0.0) / left for sign in (1, -1))
    inside = jnp.log((1 - jnp.clip(told, -bend, bend) + left * jnp.tanh(below)) / 2)
    return jnp.where(told > bend, jnp.log(left) - jax.nn.softplus(2 * above), inside)
