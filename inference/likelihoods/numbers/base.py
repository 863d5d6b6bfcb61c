"""Laws of one true answer, clipped to the bounds of its question."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import log_ndtr
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import promote_shapes, validate_sample

from inference.likelihoods.numbers.gaussian import log_gaussian_kernel_integral, tilted_gaussian_masses
from inference.likelihoods.numbers.quadrature import density_cells, panel_nodes

# For an exponential law's quadrature.
PANELS, NODES_A_PANEL = 32, 12


def log_normal(x: Array, loc: Array, scale: Array) -> Array:
    """Log density of Normal(loc, scale) at x."""
    return -(((x - loc) / scale) ** 2) / 2 - jnp.log(scale) - math.log(2 * math.pi) / 2


def log_laplace(x: Array, loc: Array, scale: Array) -> Array:
    """Log density of Laplace(loc, scale) at x."""
    return -jnp.abs(x - loc) / scale - jnp.log(2 * scale)


class ClippedLaw(Distribution):
    """A one-dimensional law clipped to [low, high]: a density inside and point masses at both ends.

    A subclass states its `log_atoms`, its `tilted_masses`, its `log_density` and `draw`; any noise that is
    built on exponential kernels follows from the first two. Densities are relative to Lebesgue measure
    inside plus a unit mass at each end. All arguments share one unit of length.

    Attributes:
        low: lower bound, shape (...).
        high: upper bound, shape (...).
    """

    low: Array
    high: Array

    @property
    def support(self) -> constraints.Constraint:
        """The interval [low, high]."""
        return constraints.interval(self.low, self.high)

    @abstractmethod
    def log_atoms(self) -> tuple[Array, Array]:
        """Log probabilities that the unclipped value is at most `low` and at least `high`."""

    @abstractmethod
    def log_density(self, x: Array) -> Array:
        """Compute the log density of the unclipped law.

        Args:
            x: where, shape (sample…, batch…).

        Returns:
            The log density at x, of the same shape.
        """

    @abstractmethod
    def draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        """Draw from the unclipped law.

        Args:
            key: JAX's random key.
            shape: of the draws, the batch's included.

        Returns:
            The draws.
        """

    @abstractmethod
    def tilted_masses(self, edges: Array, tilt: Array | float, origin: Array) -> Array:
        """Integrate exp(tilt * (x - origin)) dP(x) over the intervals between edges, atoms excluded.

        Args:
            edges: increasing within [low, high], shape (..., K + 1).
            tilt: per unit of length, shape (..., 1) or a number.
            origin: keeps the exponent small, shape (..., K); it may have leading axes more, as `tilt` may.

        Returns:
            The K integrals, shape (..., K).
        """

    def log_with_laplace(self, z: Array, scale: Array) -> Array:
        """Compute the log density of the law plus Laplace noise.

        Args:
            z: reports, shape (sample…, batch…).
            scale: of the noise, shape (batch…).

        Returns:
            The log density at each report, shape (sample…, batch…).
        """
        inside = jnp.clip(z, self.low, self.high)
        low, high = (jnp.broadcast_to(end, z.shape) for end in (self.low, self.high))
        # What is below the report and what is above it, at once: less to compile.
        edges = jnp.stack([jnp.stack([low, inside], -1), jnp.stack([inside, high], -1)])
        signs = jnp.reshape(jnp.array([1.0, -1.0]), (2,) + (1,) * (z.ndim + 1))
        below, above = self.tilted_masses(edges, signs / scale[..., None], inside[..., None])[..., 0]
        log_low, log_high = self.log_atoms()
        at_low = jnp.exp(log_low + (self.low - inside) / scale)
        at_high = jnp.exp(log_high + (inside - self.high) / scale)
        return jnp.log((at_low + at_high + below + above) / (2 * scale)) - jnp.abs(z - inside) / scale

    def log_with_gaussian(self, z: Array, scale: Array) -> Array:
        """Compute the log density of the law plus Gaussian noise.

        Args:
            z: reports, shape (sample…, batch…).
            scale: standard deviation of the noise, shape (batch…).

        Returns:
            The log density at each report, shape (sample…, batch…).
        """
        log_low, log_high = self.log_atoms()
        at_low, at_high = log_low + log_normal(z, self.low, scale), log_high + log_normal(z, self.high, scale)
        return jnp.logaddexp(jnp.logaddexp(at_low, at_high), self.log_smoothed(z, scale))

    def gaussian_cells(self, edges: ArrayLike, scale: ArrayLike) -> Array:
        """Compute the probabilities of the law plus Gaussian noise in cells.

        Args:
            edges: the K + 1 edges of the cells, increasing.
            scale: standard deviation of the noise, shape (batch…).

        Returns:
            Probabilities (..., K + 2) of law plus noise below, in each cell of, and above `edges`.
        """
        batch = max(len(self.batch_shape), jnp.ndim(scale))
        return density_cells(self.log_with_gaussian, edges, scale, batch)

    def log_smoothed(self, z: Array, scale: Array) -> Array:
        """Compute the log density of the part inside the bounds (no atoms) plus Gaussian noise.

        Args:
            z: reports, shape (sample…, batch…).
            scale: standard deviation of the noise, shape (batch…).

        Returns:
            The log density at each report, shape (sample…, batch…).
        """
        raise NotImplementedError

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        return jnp.clip(self.draw(key, sample_shape + self.batch_shape), self.low, self.high)

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        x = jnp.asarray(value)
        log_low, log_high = self.log_atoms()
        inside = self.log_density(x)
        return jnp.where(x <= self.low, log_low, jnp.where(x >= self.high, log_high, inside))


class ClippedNormal(ClippedLaw):
    """Normal(loc, scale) clipped to [low, high] (METHODS 2.1); parameters in the unit of the bounds.

    Args:
        loc: mean before clipping, shape (...).
        scale: standard deviation before clipping, shape (...).
        low: lower bound, shape (...).
        high: upper bound, shape (...).
        validate_args: whether NumPyro checks arguments and values.
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real,
        "scale": constraints.positive,
        "low": constraints.real,
        "high": constraints.real,
    }

    def __init__(
        self,
        loc: ArrayLike,
        scale: ArrayLike,
        low: ArrayLike = 0.0,
        high: ArrayLike = 1.0,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.low, self.high = promote_shapes(loc, scale, low, high)
        shape = jnp.broadcast_shapes(*map(jnp.shape, (loc, scale, low, high)))
        super().__init__(shape, validate_args=validate_args)

    def log_atoms(self) -> tuple[Array, Array]:
        return log_ndtr((self.low - self.loc) / self.scale), log_ndtr((self.loc - self.high) / self.scale)

    def log_density(self, x: Array) -> Array:
        return log_normal(x, self.loc, self.scale)

    def draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        return jnp.asarray(self.loc + self.scale * jax.random.normal(key, shape))

    def tilted_masses(self, edges: Array, tilt: Array | float, origin: Array) -> Array:
        loc, scale = jnp.asarray(self.loc)[..., None], jnp.asarray(self.scale)[..., None]
        return tilted_gaussian_masses(edges, loc, scale, tilt, origin)

    def log_smoothed(self, z: Array, scale: Array) -> Array:
        low, high, loc, sd = self.low, self.high, self.loc, self.scale
        total = jnp.hypot(sd, scale)
        centre = loc + (z - loc) * (sd / total) ** 2
        return log_gaussian_kernel_integral(
            low, high, centre, sd * scale / total, lambda x: log_normal(x, loc, sd) + log_normal(z, x, scale)
        )


def _mean_decay(y: Array) -> Array:
    """(1 - exp(-y)) / y for y >= 0, through its limit 1 at zero."""
    small = y < 0.1
    series, term = jnp.ones_like(y), jnp.ones_like(y)
    for order in range(2, 11):
        term = -term * jnp.where(small, y, 0.0) / order
        series += term
    positive = jnp.where(small, 1.0, y)
    return jnp.where(small, series, -jnp.expm1(-positive) / positive)


class ClippedExponential(ClippedLaw):
    """Exponential(rate) that begins at `start`, clipped to [low, high] (METHODS 2.2).

    Args:
        rate: per unit of the bounds, shape (...).
        low: lower bound, shape (...).
        high: upper bound, shape (...).
        start: where the law begins, shape (...); below `low` there is a point mass at `low` too.
        validate_args: whether NumPyro checks arguments and values.
    """

    arg_constraints = {  # noqa: RUF012
        "rate": constraints.positive,
        "low": constraints.real,
        "high": constraints.real,
        "start": constraints.real,
    }

    def __init__(
        self,
        rate: ArrayLike,
        low: ArrayLike = 0.0,
        high: ArrayLike = 1.0,
        start: ArrayLike = 0.0,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.rate, self.low, self.high, self.start = promote_shapes(rate, low, high, start)
        shape = jnp.broadcast_shapes(*map(jnp.shape, (rate, low, high, start)))
        super().__init__(shape, validate_args=validate_args)

    def log_atoms(self) -> tuple[Array, Array]:
        below = self.rate * (self.low - self.start)
        some = below > 0
        at_low = jnp.where(some, jnp.log(-jnp.expm1(-jnp.where(some, below, 1.0))), -jnp.inf)
        return at_low, -self.rate * jnp.maximum(self.high - self.start, 0.0)

    def log_density(self, x: Array) -> Array:
        return jnp.where(x < self.start, -jnp.inf, jnp.log(self.rate) - self.rate * (x - self.start))

    def draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        return jnp.asarray(self.start + jax.random.exponential(key, shape) / self.rate)

    def tilted_masses(self, edges: Array, tilt: Array | float, origin: Array) -> Array:
        rate, start = jnp.asarray(self.rate)[..., None], jnp.asarray(self.start)[..., None]
        edges = jnp.maximum(edges, start)
        left, right = edges[..., :-1], edges[..., 1:]
        growth = (tilt - rate) * (right - left)
        grows = growth > 0
        heavier = jnp.where(grows, right, left)
        weight = rate * jnp.exp(tilt * (heavier - origin) - rate * (heavier - start))
        return weight * (right - left) * _mean_decay(jnp.where(grows, growth, -growth))

    def points(self) -> tuple[Array, Array]:
        """Return points (Q,) and log masses (..., Q) that represent the law; for bounds without a batch.

        Panels double in length from the law's start: some of them fit any rate up to 2³² per span.
        """
        first = jnp.clip(self.start, self.low, self.high)
        edges = first + (self.high - first) * np.concatenate([[0.0], np.exp2(np.arange(-PANELS, 1.0))])
        nodes = panel_nodes(jnp.ravel(edges), 1, NODES_A_PANEL)
        log_low, log_high = self.log_atoms()
        x, weights = nodes.points.ravel(), nodes.weights.ravel()
        rate = jnp.asarray(self.rate)[..., None]
        inside = jnp.log(rate) - rate * (x - jnp.ravel(self.start)) + jnp.log(weights)
        log_masses = jnp.concatenate([log_low[..., None], inside, log_high[..., None]], -1)
        return jnp.concatenate([jnp.ravel(self.low), x, jnp.ravel(self.high)]), log_masses

    def log_smoothed(self, z: Array, scale: Array) -> Array:
        low, high, rate, start = self.low, self.high, self.rate, self.start
        first = jnp.maximum(low, start)
        some = first < high
        last = jnp.where(some, high, first + 1)
        inside = log_gaussian_kernel_integral(
            first,
            last,
            z - rate * scale**2,
            scale,
            lambda x: jnp.log(rate) - rate * (x - start) + log_normal(z, x, scale),
        )
        return jnp.where(some, inside, -jnp.inf)
