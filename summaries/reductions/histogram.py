"""Reports of one number: a histogram over the grid, so fine that it loses almost nothing."""

import numpy as np
from numpy.typing import NDArray

from ldp_client.core.noise_levels import NOISE_BITS
from ldp_client.mechanisms.number import NumberMechanism, RefusableNumber
from summaries.reductions.base import Payloads, Reduction, Values, counts_all, signed

# Cells of 1/64 of a Laplace scale lose about 1e-5 of the information, as do cells of 1/32 of an sd: as much
# as rounding adds to the variance, a twelfth of a cell squared. There are never fewer than 256: answers whose
# own sd is a fiftieth of the bounds then lose 0.2 % of the information on that sd, but 2.5 % with 64 cells.
CELLS_PER_SCALE, CELLS_PER_SD = 64, 32
FEWEST_CELLS, MOST_CELLS = 256, 4096
# How far beyond the bounds the cells reach, in grid units. The distance of a Laplace report beyond them says
# nothing about the answer. With normal noise it does, and 1e-9 of the reports are further out than this.
REACH = {"laplace": 0, "gaussian": 6 << NOISE_BITS}


def histogram_cells(levels: int, reach: int) -> int:
    """Return how many cells cover the grid points −reach..levels + reach; below and above are extra."""
    span = levels + 2 * reach
    wanted = (CELLS_PER_SD if reach else CELLS_PER_SCALE) * (1 + (span - 1 >> NOISE_BITS))
    return min(max(wanted, FEWEST_CELLS), MOST_CELLS, span + 1)


def histogram_edges(levels: int, reach: int) -> NDArray[np.float64]:
    """Return the edges of the cells in grid units, at half-integers.

    They run from −reach − ½ to levels + reach + ½: (cells + 1,).
    """
    cells = histogram_cells(levels, reach)
    points = levels + 2 * reach + 1
    first_points = [-(-cell * points // cells) for cell in range(cells + 1)]
    return np.asarray(first_points, dtype=np.float64) - 0.5 - reach


def _size(mechanism: NumberMechanism) -> int:
    return histogram_cells(mechanism.levels, REACH[mechanism.name]) + 2


def _histogram(mechanism: NumberMechanism, payloads: Payloads) -> Values:
    """Count reports below the cells, in each cell, and above."""
    reach = REACH[mechanism.name]
    points = mechanism.levels + 2 * reach + 1
    cells = _size(mechanism) - 2
    values = signed(payloads)[:, 0].astype(np.int64) + reach
    cell = np.clip(values, -1, points) * cells // points
    return np.bincount(cell + 1, minlength=cells + 2).astype(np.int64)


HISTOGRAM = Reduction(_size, _histogram, counts_all)


def _two_histograms(mechanism: RefusableNumber, payloads: Payloads) -> Values:
    """Return the histogram of the reports that tell a number, then of the reports that tell a refusal."""
    refused = payloads[:, -1] == 1
    numbers = np.ascontiguousarray(payloads[:, :-1])
    found = [_histogram(mechanism.number, numbers[told]) for told in (~refused, refused)]
    return np.concatenate(found)


# For numbers that may be refused.
TWO_HISTOGRAMS = Reduction(lambda mechanism: 2 * _size(mechanism.number), _two_histograms, counts_all)
