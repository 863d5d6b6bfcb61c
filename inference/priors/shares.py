"""Coordinates for shares of many choices that suit a sampler: sticks broken off in a given order.

If reports determine the shares, the order is by size. Breaking the largest shares off first makes the
coordinates nearly independent: under a Dirichlet prior they are exactly independent in any order, and a
share that the reports determine well depends only on its own coordinate and on those for larger shares.

Under a small or unknown concentration a the logarithm of a share has an sd of 1/a: a sampler needs very long
paths, and shares become zero in floating point, at which a Dirichlet's density is not finite. So the logit
of each stick's part is x = y + y³. If reports determine a share, y is as good as x. A tail of length 1/a in
x has the length of its cube root in y, and the density, computed on logits, stays finite.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.nn import log_sigmoid
from jax.scipy.special import betaln
from jax.typing import ArrayLike
from numpy.typing import NDArray
from numpyro.distributions import Dirichlet, Distribution, biject_to, constraints
from numpyro.distributions.transforms import StickBreakingTransform, Transform
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
    """Return shares (..., k) of coordinates (..., k − 1), in breaking order; the smallest may be zero."""
    x = y + y**3
    left = jnp.cumsum(log_sigmoid(-x), -1)
    before = jnp.concatenate([jnp.zeros_like(left[..., :1]), left[..., :-1]], -1)
    return jnp.exp(jnp.concatenate([log_sigmoid(x) + before, left[..., -1:]], -1))


def coordinates_of(log_shares: Array) -> Array:
    """Return coordinates (..., k − 1) from log shares (..., k), which need not add up to one."""
    after = jax.lax.cumlogsumexp(log_shares, axis=log_shares.ndim - 1, reverse=True)[..., 1:]
    # The one real root of y³ + y = x.
    return 2 / jnp.sqrt(3.0) * jnp.sinh(jnp.arcsinh(1.5 * jnp.sqrt(3.0) * (log_shares[..., :-1] - after)) / 3)


def breaking_order(shares: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the indices of shares by falling size, and the inverse permutation, (2, k)."""
    order = np.argsort(-shares, kind="stable")
    return np.stack([order, np.argsort(order)])


class OrderedSimplex(constraints.Constraint):
    """The simplex, with the order in which its coordinates break off.

    order: (2, k), the indices of the choices in that order, and the inverse permutation: `breaking_order`.
    """

    event_dim = 1

    def __init__(self, order: Array) -> None:
        self.order = order

    def __call__(self, x: Any) -> Array:
        return constraints.simplex(x)

    def feasible_like(self, prototype: Array) -> Array:
        return constraints.simplex.feasible_like(prototype)

    def tree_flatten(self) -> tuple[tuple[Array], tuple[tuple[str], dict[str, Any]]]:
        return (self.order,), (("order",), {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OrderedSimplex) and self.order is other.order

    __hash__ = None  # type: ignore[assignment]


@jax.custom_vjp
def break_sticks(x: Array) -> tuple[Array, Array]:
    """Return shares (..., k) of x (..., k - 1) as NumPyro's StickBreakingTransform, and the log-determinant.

    The gradient is written by hand: two running sums, without a logarithm.
    """
    return _break_sticks(x)[0]


def _break_sticks(x: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return (shares, log-determinant), and what the gradient needs: parts broken off and shares."""
    z = x - jnp.log(jnp.arange(x.shape[-1], 0, -1, dtype=x.dtype))
    small = jnp.exp(-jnp.abs(z))
    part = jnp.where(z > 0, 1.0, small) / (1 + small)
    log_rest = -(jnp.maximum(z, 0.0) + jnp.log1p(small))
    log_left = jnp.cumsum(log_rest, -1)
    left = jnp.exp(log_left)
    before = jnp.concatenate([jnp.ones_like(x[..., :1]), left[..., :-1]], -1)
    shares = jnp.concatenate([part * before, left[..., -1:]], -1)
    return (shares, jnp.sum(z + log_rest + log_left, -1)), (part, shares)


def _break_sticks_back(saved: tuple[Array, Array], slopes: tuple[Array, Array]) -> tuple[Array]:
    part, shares = saved
    of_shares, of_determinant = slopes
    weights = of_shares * shares
    after = jnp.cumsum(weights[..., ::-1], -1)[..., ::-1][..., 1:]
    later = jnp.arange(part.shape[-1], 0, -1, dtype=part.dtype)
    through_shares = weights[..., :-1] * (1 - part) - part * after
    return (through_shares + of_determinant[..., None] * (1 - part * (1 + later)),)


break_sticks.defvjp(_break_sticks, _break_sticks_back)


class OrderedStickBreaking(Transform):
    """Stick breaking of shares[order[0]]."""

    domain = constraints.real_vector

    def __init__(self, order: Array) -> None:
        self.order = jnp.asarray(order)

    @property
    def codomain(self) -> constraints.Constraint:
        return OrderedSimplex(self.order)

    def __call__(self, x: Array) -> Array:
        return self.call_with_intermediates(x)[0]

    def call_with_intermediates(self, x: Array) -> tuple[Array, Array]:
        """Return the shares, and the log-determinant."""
        shares, log_determinant = break_sticks(x)
        return shares[..., self.order[1]], log_determinant

    def _inverse(self, y: Array) -> Array:
        return StickBreakingTransform().inv(y[..., self.order[0]])

    def log_abs_det_jacobian(self, x: Array, y: Array, intermediates: Any = None) -> Array:
        del y
        return break_sticks(x)[1] if intermediates is None else intermediates

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return StickBreakingTransform().forward_shape(shape)

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return StickBreakingTransform().inverse_shape(shape)

    def tree_flatten(self) -> tuple[tuple[Array], tuple[tuple[str], dict[str, Any]]]:
        return (self.order,), (("order",), {})


class OrderedDirichlet(Dirichlet):
    """Dirichlet(concentration) with the same law, sampled in the coordinates of `order` (2, k)."""

    pytree_data_fields = ("order",)

    def __init__(self, concentration: Array, order: Array, *, validate_args: bool | None = None) -> None:
        self.order = order
        super().__init__(concentration, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return OrderedSimplex(self.order)


@biject_to.register(OrderedSimplex)
def _to_ordered_simplex(constraint: OrderedSimplex) -> OrderedStickBreaking:
    return OrderedStickBreaking(constraint.order)
