"""Laws of one true answer, clipped to the bounds of its question, as masses at points (METHODS 2.3, 2.4)."""

import math
from abc import abstractmethod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike
from numpy.typing import NDArray
from numpyro.distributions import Beta, Delta, Distribution, MixtureGeneral, MixtureSameFamily

from inference.likelihoods.numbers.noise import log_mixture, mixture_cells

Values = NDArray[np.number]
# Panels over the bounds, and Gauss-Legendre nodes in each.
PANELS, NODES = 128, 6
MOST_POINTS = 1 << 14
FEWEST_BEYOND = 512
_NEARLY_ALL = 1 - 1e-6
# Of `tanh_sinh`: its step, and its reach.
_STEP = 0.11
# Distances down to about 1e-300 of the panel's length: room for a density like x^(0.05 - 1) at zero.
_NEAR, _FAR = 6.05, 2.6


def gauss_legendre(edges: Values, count: int) -> tuple[Values, Values]:
    """Return `count` nodes in each panel between edges (K + 1,), and their weights: (K * count,)."""
    x, w = np.polynomial.legendre.leggauss(count)
    left, width = edges[:-1, None], np.diff(edges)[:, None]
    return (left + width * (x + 1) / 2).ravel(), (width * w / 2).ravel()


def tanh_sinh(end: float, other: float) -> tuple[Values, Values]:
    """Return nodes from `end`, a possible singularity, which they approach geometrically, and weights."""
    t = np.arange(-_NEAR, _FAR, _STEP)
    exponent = np.pi * np.sinh(t)
    x = 1 / (1 + np.exp(-exponent))
    w = _STEP * np.pi * np.cosh(t) * x / (1 + np.exp(exponent))
    # Nodes that floats can tell from the end.
    points = (end + (other - end) * x).astype(jnp.result_type(float))
    kept = (points != end) & (x > 1e6 * np.finfo(points.dtype).tiny)
    return points[kept], abs(other - end) * w[kept]


class ClippedLaw(Distribution):
    """A law of one number clipped to [low, high], with its mass beyond them at both ends.

    A subclass states its `log_atoms` and its `points`; its law under any noise follows.

    Args:
        base: The law of the answer before it is clipped.
        low: lower bound, a number in the unit of the base.
        high: upper bound.
    """

    base: Any
    pytree_data_fields = ("base",)
    pytree_aux_fields = ("low", "high")

    def __init__(self, base: Distribution, low: float = 0.0, high: float = 1.0) -> None:
        self.base, self.low, self.high = base, float(low), float(high)
        super().__init__(base.batch_shape)

    @abstractmethod
    def log_atoms(self) -> tuple[Array, Array]:
        """Log probabilities that the unclipped value is at most `low` and at least `high`."""

    @abstractmethod
    def points(self, cells: int = 1) -> tuple[Any, Array]:
        """Return points (..., Q) and log masses (..., Q) that represent the law under a smooth function.

        Args:
            cells: equal cells between the bounds; no mass stands for parts of two of them.
        """

    def cell_masses(self, cells: int) -> Array:
        """Compute the probabilities of equal cells between the bounds, point masses in the outer ones.

        Args:
            cells: how many.

        Returns:
            Probabilities (..., cells), which sum to one.
        """
        points, log_masses = self.points(cells)
        cell = np.floor((points - self.low) / (self.high - self.low) * cells)
        return jnp.exp(log_masses) @ (np.clip(cell, 0, cells - 1)[:, None] == np.arange(cells))

    def log_perturbed(self, noise: str, z: Array, scale: Array) -> Array:
        """Compute the log density of the law plus noise.

        Args:
            noise: "laplace" or "gaussian".
            z: reports, shape (sample…, batch…).
            scale: of the noise, shape (batch…).

        Returns:
            The log density at each report, shape (sample…, batch…).
        """
        return log_mixture(noise, *self.points(), z, scale)

    def perturbed_cells(self, noise: str, edges: ArrayLike, scale: ArrayLike) -> Array:
        """Compute the probabilities of the law plus noise in cells.

        Args:
            noise: "laplace" or "gaussian".
            edges: the K + 1 edges of the cells, increasing.
            scale: of the noise, shape (batch…).

        Returns:
            Probabilities (..., K + 2) of law plus noise below, in each cell of, and above `edges`.
        """
        return mixture_cells(noise, *self.points(), edges, scale)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        return jnp.clip(jnp.asarray(self.base.sample(key, sample_shape), float), self.low, self.high)

    def _log_probs(self, law: Distribution, points: Values) -> Array:
        """Log density or probability at points (Q,), shape (..., Q)."""
        x = jnp.asarray(points).reshape(-1, *[1] * len(self.batch_shape))
        return jnp.moveaxis(law.log_prob(x), 0, -1)


class ClippedContinuous(ClippedLaw):
    """A continuous law clipped to [low, high], by quadrature of its density.

    Errors of cell probabilities stay below 1e-8 where the base's narrowest feature between the bounds has an
    sd of at least 1/256 of their distance. The mass that quadrature finds is taken as all.

    Args:
        base: any univariate NumPyro law whose `log_prob` is smooth inside its support, with a `cdf` that JAX
            can differentiate, if the support exceeds the bounds. Its density may be singular at the ends of
            its support, which are known before tracing. One that is singular at an end other than zero should
            be shifted there: floats near that end are too coarse.
        low: lower bound, a number in the unit of the base.
        high: upper bound.

    Raises:
        ValueError: the law is discrete, a mixture, or not of one number.
    """

    def __init__(self, base: Distribution, low: float = 0.0, high: float = 1.0) -> None:
        # Quadrature misses a mass at a point.
        wrong = isinstance(base, (Delta, MixtureGeneral, MixtureSameFamily))
        if wrong or base.event_shape or base.is_discrete:
            raise ValueError(f"{type(base).__name__} is not a continuous law of one number with one peak")
        super().__init__(base, low, high)

    def _ends(self) -> tuple[float, float]:
        """Return the ends of the law's support."""
        support = self.base.support
        first, last = getattr(support, "lower_bound", -np.inf), getattr(support, "upper_bound", np.inf)
        return float(np.asarray(first)), float(np.asarray(last))

    def log_atoms(self) -> tuple[Array, Array]:
        (first, last), nothing = self._ends(), jnp.zeros(self.batch_shape)
        below = self.base.cdf(jnp.asarray(self.low)) if first < self.low else nothing
        above = 1 - self.base.cdf(jnp.asarray(self.high)) if last > self.high else nothing
        return _log_of(below), _log_of(above)

    def points(self, cells: int = 1) -> tuple[Any, Array]:
        first, last = self._ends()
        start, stop = max(first, self.low), min(last, self.high)
        # 1. Panels, of which those at an end of the support have nodes that approach it.
        edges = np.union1d(np.linspace(start, stop, PANELS + 1), np.linspace(self.low, self.high, cells + 1))
        edges = edges[(edges >= start) & (edges <= stop)]
        lower, upper = first >= self.low, last <= self.high
        parts = [(self.base, *gauss_legendre(edges[int(lower) : len(edges) - int(upper)], NODES))]
        if lower:
            parts.append((self.base, *tanh_sinh(start, edges[1])))
        if upper and type(self.base) is not Beta:
            parts.append((self.base, *tanh_sinh(stop, edges[-2])))
        masses = [self._log_probs(law, x) + np.log(w) for law, x, w in parts]
        points = [x for _, x, _ in parts]
        if upper and type(self.base) is Beta:
            # Floats are dense at zero alone: the end at one is mirrored there.
            x, w = tanh_sinh(0.0, stop - edges[-2])
            mirrored = Beta(self.base.concentration0, self.base.concentration1)
            points, masses = [*points, stop - x], [*masses, self._log_probs(mirrored, x) + np.log(w)]
        # 2. The law's mass at the bounds.
        log_low, log_high = (log_atom[..., None] for log_atom in self.log_atoms())
        every = jnp.concatenate([*masses, log_low, log_high], axis=-1)
        where = np.concatenate([*points, [self.low, self.high]])
        return where, every - logsumexp(every, axis=-1, keepdims=True)


def _log_of(share: Array) -> Array:
    """Log of a share, −inf with a derivative of zero if that is zero."""
    some = share > 0
    return jnp.where(some, jnp.log(jnp.where(some, share, 1.0)), -jnp.inf)


class ClippedDiscrete(ClippedLaw):
    """A law on the integers clipped to [low, high]: masses at low, at the integers between, and at high.

    The mass at `high` is one minus the others, or, where that would cancel, the sum over as many integers
    again beyond it.

    Args:
        base: Poisson, GeometricProbs or any other NumPyro law on the integers with a lower end; its log_prob
            is all that is used.
        low: lower bound, a number.
        high: upper bound; callers check that at most MOST_POINTS integers lie between the bounds.

    Raises:
        ValueError: the law has no lowest integer or is not of one number.
    """

    def __init__(self, base: Distribution, low: float = 0.0, high: float = 1.0) -> None:
        first = getattr(base.support, "lower_bound", None)
        if first is None or base.event_shape:
            raise ValueError(f"{type(base).__name__} has no lowest integer to sum from")
        super().__init__(base, low, high)
        self._first = int(first)

    @property
    def _inner(self) -> Values:
        return np.arange(max(math.floor(self.low) + 1, self._first), math.ceil(self.high))

    def log_atoms(self) -> tuple[Array, Array]:
        up_to_low = np.arange(self._first, math.floor(self.low) + 1)
        at_low = self._log_sum(up_to_low)
        below = jnp.exp(jnp.logaddexp(at_low, self._log_sum(self._inner)))
        top = max(math.ceil(self.high), self._first)
        reach = max(FEWEST_BEYOND, len(up_to_low) + len(self._inner))
        series = self._log_sum(np.arange(top, top + reach))
        some = below < _NEARLY_ALL
        return at_low, jnp.where(some, jnp.log1p(-jnp.where(some, below, 0.0)), series)

    def _log_sum(self, points: Values) -> Array:
        if not len(points):
            return jnp.full(self.batch_shape, -jnp.inf)
        return logsumexp(self._log_probs(self.base, points), axis=-1)

    def points(self, cells: int = 1) -> tuple[Any, Array]:
        del cells
        log_low, log_high = (log_atom[..., None] for log_atom in self.log_atoms())
        inside = [self._log_probs(self.base, self._inner)] if len(self._inner) else []
        where = np.concatenate([[self.low], self._inner, [self.high]])
        return where, jnp.concatenate([log_low, *inside, log_high], axis=-1)
