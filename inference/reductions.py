"""From payloads to the integers that a likelihood needs: one fixed-size vector for each mechanism.

Each reduction is a sum over reports, so that summaries of parts add up to the summary of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ldp_client.core.calibration import NOISE_BITS
from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.laplace import Laplace

Payloads = NDArray[np.uint8]
Values = NDArray[np.int64]

# Cells of at most 1/64 of the noise scale lose about 1e-5 of the information; never fewer than 256.
CELLS_PER_SCALE = 64
FEWEST_CELLS, MOST_CELLS = 256, 4096
# Up to this many choices, unary reports are kept as counts of whole bit patterns.
MOST_PATTERN_CHOICES = 12


class Reduction(NamedTuple):
    """kind: what the values are. size: how many. reduce: (n, payload bytes) -> values summed over n."""

    kind: str
    size: Callable[[Mechanism], int]
    reduce: Callable[[Mechanism, Payloads], Values]


def histogram_cells(levels: int) -> int:
    """How many cells cover the grid points 0..levels; below and above come on top."""
    wanted = CELLS_PER_SCALE * (1 + (levels - 1 >> NOISE_BITS))
    return min(max(wanted, FEWEST_CELLS), MOST_CELLS, levels + 1)


def histogram_edges(levels: int) -> NDArray[np.float64]:
    """Edges of the cells in grid units, at half-integers: −½ … levels + ½. Shape (cells + 1,)."""
    cells = histogram_cells(levels)
    first_points = [-(-cell * (levels + 1) // cells) for cell in range(cells + 1)]
    return np.asarray(first_points, dtype=np.float64) - 0.5


def _histogram(mechanism: Mechanism, payloads: Payloads) -> Values:
    """Reports below the grid, in each cell, and above."""
    levels = cast(Laplace, mechanism).levels
    cells = histogram_cells(levels)
    values = _signed(payloads)[:, 0].astype(np.int64)
    cell = np.clip(values, -1, levels + 1) * cells // (levels + 1)
    return np.bincount(cell + 1, minlength=cells + 2).astype(np.int64)


def _signed(payloads: Payloads) -> NDArray[np.int32]:
    return np.ascontiguousarray(payloads).view(">i4").astype(np.int32)


def _choices(mechanism: Mechanism) -> int:
    return cast(ChoiceMechanism, mechanism).choices


def _index_counts(mechanism: Mechanism, payloads: Payloads) -> Values:
    index = np.zeros(len(payloads), dtype=np.int64)
    for column in payloads.T:
        index = index * 256 + column
    return np.bincount(index, minlength=_choices(mechanism)).astype(np.int64)


def keeps_patterns(choices: int) -> bool:
    """Whether unary reports of so many choices are kept as patterns (exact), not as column sums."""
    return choices <= MOST_PATTERN_CHOICES


def pattern_bits(choices: int) -> NDArray[np.float64]:
    """The bits of every pattern, in the order of the counts, shape (2**choices, choices)."""
    return ((np.arange(1 << choices)[:, None] >> np.arange(choices)) & 1).astype(np.float64)


def _unary_size(mechanism: Mechanism) -> int:
    choices = _choices(mechanism)
    return 1 << choices if keeps_patterns(choices) else choices


def _unary_counts(mechanism: Mechanism, payloads: Payloads) -> Values:
    choices = _choices(mechanism)
    if not keeps_patterns(choices):
        bits = np.unpackbits(payloads, axis=1, bitorder="little", count=choices)
        return bits.sum(axis=0, dtype=np.int64)
    pattern = np.zeros(len(payloads), dtype=np.int64)
    for place, column in enumerate(payloads.T):
        pattern |= column.astype(np.int64) << (8 * place)
    return np.bincount(pattern, minlength=1 << choices).astype(np.int64)


def _coordinate_count(mechanism: Mechanism) -> int:
    return len(cast(GaussianStatistics, mechanism).coordinates)


def _sums(_mechanism: Mechanism, payloads: Payloads) -> Values:
    return _signed(payloads).sum(axis=0, dtype=np.int64)


REDUCTIONS = {
    "laplace": Reduction("histogram", lambda m: histogram_cells(cast(Laplace, m).levels) + 2, _histogram),
    "randomized_response": Reduction("counts", _choices, _index_counts),
    "oue": Reduction("unary", _unary_size, _unary_counts),
    "gaussian_statistics": Reduction("sums", _coordinate_count, _sums),
}
