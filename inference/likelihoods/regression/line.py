"""What the laws of regressions share: a line, and features that are jointly normal."""

from __future__ import annotations

from abc import abstractmethod

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints

_LINE = {
    "coefficients": constraints.real_vector,
    "intercept": constraints.real,
    "feature_mean": constraints.real_vector,
    "feature_covariance": constraints.positive_definite,
}


class LineOfNormalFeatures(Distribution):
    """Base of reports of a regression on x ~ N(feature_mean, feature_covariance).

    A subclass names its further arguments, numbers of shape (...), in `arg_constraints`.

    Args:
        coefficients: slopes in the units of the records, shape (..., d).
        intercept: shape (...).
        feature_mean: shape (..., d).
        feature_covariance: shape (..., d, d).
        validate_args: whether NumPyro checks arguments and values.
        others: the subclass's further arguments.

    Raises:
        TypeError: An argument is missing, or unknown.
    """

    arg_constraints: dict[str, constraints.Constraint] = _LINE

    def __init__(
        self,
        coefficients: ArrayLike,
        intercept: ArrayLike,
        feature_mean: ArrayLike,
        feature_covariance: ArrayLike,
        *,
        validate_args: bool | None = None,
        **others: ArrayLike,
    ) -> None:
        wrong = others.keys() ^ (self.arg_constraints.keys() - _LINE.keys())
        if wrong:
            raise TypeError(f"missing or unknown arguments: {', '.join(sorted(wrong))}")
        self.coefficients, self.intercept = jnp.asarray(coefficients), jnp.asarray(intercept)
        self.feature_mean, self.feature_covariance = (
            jnp.asarray(feature_mean),
            jnp.asarray(feature_covariance),
        )
        for name, value in others.items():
            setattr(self, name, jnp.asarray(value))
        shapes = []
        for name, constraint in self.arg_constraints.items():
            shape = getattr(self, name).shape
            shapes.append(shape[: len(shape) - constraint.event_dim])
        event = self._event_shape_of(self.coefficients.shape[-1])
        super().__init__(jnp.broadcast_shapes(*shapes), event, validate_args=validate_args)

    @staticmethod
    @abstractmethod
    def _event_shape_of(d: int) -> tuple[int, ...]:
        """Return the shape of a value, for d features."""

    @property
    def _predictor(self) -> tuple[Array, Array, Array]:
        """Mean and variance of the linear predictor, and its covariance with the features (..., d)."""
        loc = self.intercept + jnp.sum(self.coefficients * self.feature_mean, -1)
        cross = jnp.einsum("...ij,...j->...i", self.feature_covariance, self.coefficients)
        return loc, jnp.sum(self.coefficients * cross, -1), cross

    def _bordered(self, features: Array, cross: Array, variance: ArrayLike) -> Array:
        """Return the covariance of (features, response), (..., d + 1, d + 1)."""
        shape, d = self.batch_shape, self.coefficients.shape[-1]
        column = jnp.broadcast_to(cross, (*shape, d))[..., None]
        corner = jnp.broadcast_to(variance, shape)[..., None, None]
        upper = jnp.concatenate([jnp.broadcast_to(features, (*shape, d, d)), column], -1)
        return jnp.concatenate([upper, jnp.concatenate([jnp.swapaxes(column, -1, -2), corner], -1)], -2)
