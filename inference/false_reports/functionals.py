"""Bounds of a quantity from the mean of a number that each report has, whoever sent a share of the reports.

Let h(report) be a number whose mean over honest reports is the quantity, whatever people answer. Of all
reports a share f came from anything at all, so that mean over all reports = (1 − f) quantity + f g, and g
lies between the least and the largest h of any possible report, its extreme points. Nothing else is known
of g, so that the quantity's bounds are those of (mean − f g)/(1 − f): no assumption on the answers enters,
nor a prior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.results.identified import Bounds

Vector = NDArray[np.float64]

# A little beyond 90 %: somebody who knows all honest reports leaves no more than what they miss by chance.
TAILS = (0.04, 0.96)
NINETY = 1.7506860712521692


class Functional(NamedTuple):
    """Of one quantity, or of several: entries (k,).

    low, high: the interval of 90 % of the mean of h over all reports. least, largest: of h over possible
    reports. bias: the most by which the mean of h over honest reports is not the quantity.
    """

    low: Vector
    high: Vector
    least: Vector
    largest: Vector
    bias: float = 0.0

    def bounds(self, share: float) -> tuple[Vector, Vector]:
        """The ends of the 90 % set of each quantity, where at most this share of reports was false.

        Each end is monotone in the share, so that it lies at none or at all of it.
        """
        low = np.minimum(self.low, (self.low - share * self.largest) / (1 - share)) - self.bias
        high = np.maximum(self.high, (self.high - share * self.least) / (1 - share)) + self.bias
        return low, high


def averaged(
    values: Vector, weights: Vector, n: float, least: float, largest: float, bias: float = 0.0
) -> Functional:
    """From h of each cell of a histogram, (cells,), of n reports of which `weights` fall in each."""
    mean = float(weights @ values)
    error = float(np.sqrt(np.maximum(weights @ values**2 - mean**2, 0.0) / n))
    low, high = np.asarray([mean - NINETY * error]), np.asarray([mean + NINETY * error])
    return Functional(low, high, np.asarray([least]), np.asarray([largest]), bias)


def around(low: float, high: float, interval: tuple[float, float], most: tuple[float, float]) -> Bounds:
    """A set with the posterior's interval inside, within what is possible at all."""
    ends = min(low, interval[0]), max(high, interval[1])
    return Bounds.of(*np.clip(ends, *most))
