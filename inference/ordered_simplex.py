"""Shares of many choices in coordinates where a sampler moves easily: sticks broken off in order of size.

Breaking the largest shares off first makes the coordinates nearly independent: under a Dirichlet prior they are
so exactly in any order, and a share that the reports determine well depends on its own coordinate and on
those of still larger shares only.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from numpyro.distributions import Dirichlet, biject_to, constraints
from numpyro.distributions.transforms import ParameterFreeTransform, StickBreakingTransform, Transform


def breaking_order(shares: NDArray[np.float64]) -> NDArray[np.intp]:
    """Indices of shares by falling size, and the inverse permutation, (2, k)."""
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


class OrderedStickBreaking(Transform):
    """Stick breaking of shares[order[0]]."""

    domain = constraints.real_vector

    def __init__(self, order: Array) -> None:
        self.order = jnp.asarray(order)
        self._sticks: ParameterFreeTransform = StickBreakingTransform()

    @property
    def codomain(self) -> constraints.Constraint:
        return OrderedSimplex(self.order)

    def __call__(self, x: Array) -> Array:
        return self._sticks(x)[..., self.order[1]]

    def _inverse(self, y: Array) -> Array:
        return self._sticks.inv(y[..., self.order[0]])

    def log_abs_det_jacobian(self, x: Array, y: Array, intermediates: Any = None) -> Array:
        return self._sticks.log_abs_det_jacobian(x, y[..., self.order[0]], intermediates)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self._sticks.forward_shape(shape)

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self._sticks.inverse_shape(shape)

    def tree_flatten(self) -> tuple[tuple[Array], tuple[tuple[str], dict[str, Any]]]:
        return (self.order,), (("order",), {})


class OrderedDirichlet(Dirichlet):
    """Dirichlet(concentration), to be sampled in the coordinates of `order` (2, k): the law is the same."""

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
