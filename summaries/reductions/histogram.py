"""Reports of one number: a histogram over the grid, so fine that it loses almost nothing."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from ldp_client.core.calibration import NOISE_BITS
from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.laplace import Laplace
from summaries.reductions.base import Payloads, Reduction, Values, counts_all, signed

# Cells of at most 1/64 of the noise scale lose about 1e-5 of the information; never fewer than 256.
CELLS_PER_SCALE = 64
FEWEST_CELLS, MOST_CELLS = 256, 4096


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
    values = signed(payloads)[:, 0].astype(np.int64)
    cell = np.clip(values, -1, levels + 1) * cells // (levels + 1)
    return np.bincount(cell + 1, minlength=cells + 2).astype(np.int64)


HISTOGRAM = Reduction(lambda m: histogram_cells(cast(Laplace, m).levels) + 2, _histogram, counts_all)
