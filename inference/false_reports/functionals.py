"""Bounds of a quantity from the mean of a number per report, if a share of the reports was arbitrary.

Let h(report) be a number whose mean over honest reports is the quantity, whatever people answer. A share f
of the reports is arbitrary, so the mean over all reports is (1 − f) quantity + f g, where g is between the
least and the largest h of any possible report, its extreme points. Nothing else is known of g, so the
quantity's bounds are the bounds of (mean − f g)/(1 − f). They need no assumption on the answers, and no
prior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.results.identified import Bounds

Vector = NDArray[np.float64]

# Slightly above 90 %: an attacker who knows all honest reports can only exploit their random error.
TAILS = (0.04, 0.96)
NINETY = 1.7506860712521692


class Functional(NamedTuple):
    """One quantity or several: entries (k,).

    low, high: the 90 % interval of the mean of h over all reports. least, largest: of h over possible
    reports. bias: the largest difference between the mean of h over honest reports and the quantity.
    """

    low: Vector
    high: Vector
    least: Vector
    largest: Vector
    bias: float = 0.0

    def bounds(self, share: float) -> tuple[Vector, Vector]:
        """Return the ends of each quantity's 90 % set, if at most this share of reports was false.

        Each end is monotone in the share, so its extreme is at a share of 0 or at the whole share.
        """
        low = np.minimum(self.low, (self.low - share * self.largest) / (1 - share)) - self.bias
        high = np.maximum(self.high, (self.high - share * self.least) / (1 - share)) + self.bias
        return low, high


def averaged(values: Vector, counts: NDArray[np.int64], bias: float) -> Functional:
    """Return the functional from h (cells,) of a histogram of reports (cells,), in which each cell may be."""
    n = max(counts.sum(), 1)
    mean = float(counts @ values) / n
    error = float(np.sqrt(np.maximum(counts @ values**2 / n - mean**2, 0.0) / n))
    low, high = np.asarray([mean - NINETY * error]), np.asarray([mean + NINETY * error])
    return Functional(low, high, values.min(keepdims=True), values.max(keepdims=True), bias)


def around(low: float, high: float, interval: tuple[float, float], most: tuple[float, float]) -> Bounds:
    """Return a set that includes the posterior's interval, clipped to the possible range."""
    ends = min(low, interval[0]), max(high, interval[1])
    return Bounds.of(*np.clip(ends, *most))
