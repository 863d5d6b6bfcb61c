"""An answer without a law: shares of cells between the bounds and at them, through a mechanism's noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

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
