"""An answer without a law: shares of cells between the bounds and at them, through a mechanism's noise."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray
from scipy.special import ndtr

from inference.likelihoods.common import CellCounts
from inference.likelihoods.numbers.noise import noise_channel

Values = NDArray[np.float64]


def cells_channel(name: str, scale: float, cells: int, edges: Values) -> Values:
    """Probabilities (cells + 2, K + 2) of a report below, in each cell of, and above `edges`, of each answer.

    Args:
        name: "laplace" or "gaussian".
        scale: of the noise, with the bounds at 0 and 1.
        cells: equal ones between the bounds, in which answers lie evenly. Before them comes the lower bound
            itself, behind them the upper one.
        edges: increasing, (K + 1,).

    Returns:
        The channel, whose rows sum to one: in closed form, by what the noise's law integrates to.
    """
    ends = np.linspace(0.0, 1.0, cells + 1)
    integrals = scale * _INTEGRALS[name]((edges - ends[:, None]) / scale)
    below = cells * (integrals[:-1] - integrals[1:])
    rest = np.zeros((cells, 1))
    inside = np.maximum(np.diff(np.concatenate([rest, below, rest + 1], axis=1), axis=1), 0.0)
    low, high = noise_channel(name, [0.0, 1.0], edges, scale)
    return np.concatenate([low[None], inside, high[None]])


# What `noise_below` integrates to.
_INTEGRALS: dict[str, Callable[[Values], Values]] = {
    "laplace": lambda z: np.maximum(z, 0.0) + np.exp(-np.abs(z)) / 2,
    "gaussian": lambda z: z * ndtr(z) + np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi),
}


class SharesThroughChannel(CellCounts):
    """Counts of `total_count` reports by cell, of answers in few places, each with a known law of reports.

    Args:
        probs: shares of the places, shape (..., m).
        channel: probabilities (m, K) of the reports' cells given each place.
        total_count: how many reports, shape (...).
        validate_args: whether NumPyro checks arguments and values.
    """

    pytree_data_fields = ("probs", "channel", "total_count")

    def __init__(
        self,
        probs: ArrayLike,
        channel: ArrayLike,
        total_count: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.probs, self.channel, self.total_count = jnp.asarray(probs), channel, total_count
        shape = jnp.broadcast_shapes(self.probs.shape[:-1], jnp.shape(total_count))
        super().__init__(shape, (jnp.shape(channel)[-1],), validate_args=validate_args)

    @property
    def log_cell_probs(self) -> Array:
        cells = self.probs @ self.channel
        return jnp.log(jnp.maximum(cells, np.finfo(cells.dtype).tiny))
