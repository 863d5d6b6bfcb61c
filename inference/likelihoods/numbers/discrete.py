"""Any law on the integers, clipped to bounds: finite sums (METHODS 2.4)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike
from numpyro.distributions import Distribution

from inference.likelihoods.numbers.base import ClippedLaw, log_laplace, log_normal
from inference.likelihoods.numbers.noise import log_mixture, mixture_cells

MOST_POINTS = 1 << 14
FEWEST_BEYOND = 512
_NEARLY_ALL = 1 - 1e-6


class ClippedDiscrete(ClippedLaw):
    """A law on the integers clipped to [low, high]: masses at low, at the integers between, and at high.

    The mass at `high` is one minus the others, or, where that would cancel, the sum over as many integers
    again beyond it.

    Args:
        base: Poisson, GeometricProbs or any other NumPyro law on the integers with a lower end; its log_prob
            is all that is used.
        low: lower bound, a number.
        high: upper bound, a number at most 16,384 integers above `low` (and above the base's lower end).
        validate_args: whether NumPyro checks arguments and values.

    Raises:
        ValueError: the law has no lowest integer or is not of one number, or there are more integers than
            that.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    low: Any
    high: Any
    pytree_data_fields = ("base",)
    pytree_aux_fields = ("low", "high")

    def __init__(
        self,
        base: Distribution,
        low: ArrayLike = 0.0,
        high: ArrayLike = 1.0,
        *,
        validate_args: bool | None = None,
    ) -> None:
        first = getattr(base.support, "lower_bound", None)
        if first is None or base.event_shape:
            raise ValueError(f"{type(base).__name__} has no lowest integer to sum from")
        self.base, self.low, self.high = base, float(np.asarray(low)), float(np.asarray(high))
        self._first = int(first)
        if math.ceil(self.high) - min(self._first, math.floor(self.low)) > MOST_POINTS:
            raise ValueError(f"more than {MOST_POINTS} integers up to {high}: take a continuous law instead")
        super().__init__(base.batch_shape, validate_args=validate_args)

    @property
    def _inner(self) -> np.ndarray:
        return np.arange(max(math.floor(self.low) + 1, self._first), math.ceil(self.high))

    def _log_probs(self, points: np.ndarray) -> Array:
        """Log probabilities (..., points) of integers."""
        x = jnp.asarray(points).reshape(-1, *[1] * len(self.batch_shape))
        return jnp.moveaxis(self.base.log_prob(x), 0, -1)

    def log_atoms(self) -> tuple[Array, Array]:
        up_to_low = np.arange(self._first, math.floor(self.low) + 1)
        at_low = self._log_sum(up_to_low)
        below = jnp.exp(jnp.logaddexp(at_low, self._log_sum(self._inner)))
        top = max(math.ceil(self.high), self._first)
        reach = max(FEWEST_BEYOND, len(up_to_low) + len(self._inner))
        series = self._log_sum(np.arange(top, top + reach))
        some = below < _NEARLY_ALL
        return at_low, jnp.where(some, jnp.log1p(-jnp.where(some, below, 0.0)), series)

    def _log_sum(self, points: np.ndarray) -> Array:
        if not len(points):
            return jnp.full(self.batch_shape, -jnp.inf)
        return logsumexp(self._log_probs(points), axis=-1)

    def points(self) -> tuple[np.ndarray, Array]:
        """Return where the clipped value can lie (Q,), and the log probabilities (..., Q)."""
        log_low, log_high = self.log_atoms()
        inside = [self._log_probs(self._inner)] if len(self._inner) else []
        log_probs = jnp.concatenate([log_low[..., None], *inside, log_high[..., None]], axis=-1)
        return np.concatenate([[self.low], self._inner, [self.high]]), log_probs

    def log_density(self, x: Array) -> Array:
        """Compute the log probability of an integer under the unclipped law.

        Args:
            x: the integers, shape (sample…, batch…).

        Returns:
            The log probability of each, of the same shape.
        """
        return self.base.log_prob(x)

    def draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        batch = len(self.batch_shape)
        return jnp.asarray(self.base.sample(key, shape[: len(shape) - batch]), float)

    def tilted_masses(self, edges: Array, tilt: Array | float, origin: Array) -> Array:
        at, masses = jnp.asarray(self._inner, float), jnp.exp(self._log_probs(self._inner))
        cells = jnp.clip(jnp.searchsorted(edges, at, side="right") - 1, 0, edges.shape[-1] - 2)
        tilted = masses * jnp.exp(tilt * (at - origin[..., cells]))
        summed = jax.ops.segment_sum(jnp.moveaxis(tilted, -1, 0), cells, edges.shape[-1] - 1)
        return jnp.moveaxis(summed, 0, -1)

    def log_with_laplace(self, z: Array, scale: Array) -> Array:
        return log_mixture(*self.points(), log_laplace, z, scale)

    def log_with_gaussian(self, z: Array, scale: Array) -> Array:
        return log_mixture(*self.points(), log_normal, z, scale)

    def gaussian_cells(self, edges: ArrayLike, scale: ArrayLike) -> Array:
        return mixture_cells(*self.points(), edges, scale)
