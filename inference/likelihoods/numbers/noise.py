"""The noise that devices add to a number: what it makes of a clipped law."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Laplace, Normal

from inference.likelihoods.numbers.base import ClippedLaw
from inference.likelihoods.numbers.flows import laplace_flows


class LaplaceNoise(Laplace):
    """Laplace noise around zero.

    Args:
        scale: mean absolute noise, in the unit of the bounds, shape (...).
        validate_args: whether NumPyro checks arguments and values.
    """

    def __init__(self, scale: ArrayLike, *, validate_args: bool | None = None) -> None:
        super().__init__(0.0, scale, validate_args=validate_args)

    def log_density(self, base: ClippedLaw, z: Array) -> Array:
        """Compute the log density of base + noise.

        Args:
            base: law of the answer before noise.
            z: reports, shape (sample…, batch…).

        Returns:
            The log density at each report, shape (sample…, batch…).
        """
        return base.log_with_laplace(z, jnp.asarray(self.scale))

    def cell_probs(self, base: ClippedLaw, edges: ArrayLike) -> Array:
        """Compute the probabilities of base + noise in cells.

        Args:
            base: law of the answer before noise.
            edges: the K + 1 edges of the cells, increasing.

        Returns:
            Probabilities (..., K + 2) that base + noise is below, in each of K cells, or above `edges`.
        """
        above, below, cells = laplace_flows(base, jnp.asarray(edges), self.scale)
        return jnp.concatenate([below[..., :1], cells, above[..., -1:]], axis=-1)


class GaussianNoise(Normal):
    """Gaussian noise around zero.

    Args:
        scale: standard deviation, in the unit of the bounds, shape (...).
        validate_args: whether NumPyro checks arguments and values.
    """

    def __init__(self, scale: ArrayLike, *, validate_args: bool | None = None) -> None:
        super().__init__(0.0, scale, validate_args=validate_args)

    def log_density(self, base: ClippedLaw, z: Array) -> Array:
        """Compute the log density of base + noise.

        Args:
            base: law of the answer before noise.
            z: reports, shape (sample…, batch…).

        Returns:
            The log density at each report, shape (sample…, batch…).
        """
        return base.log_with_gaussian(z, jnp.asarray(self.scale))

    def cell_probs(self, base: ClippedLaw, edges: ArrayLike) -> Array:
        """Compute the probabilities of base + noise in cells.

        Args:
            base: law of the answer before noise.
            edges: the K + 1 edges of the cells, increasing.

        Returns:
            Probabilities (..., K + 2) that base + noise is below, in each of K cells, or above `edges`.
        """
        return base.gaussian_cells(edges, self.scale)


Noise = LaplaceNoise | GaussianNoise
