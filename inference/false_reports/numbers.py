"""The mean of numbers if some reports were false, from bounded functions of a report.

Under Laplace noise of scale s, a report between the bounds counts unchanged, and a report beyond a bound
counts as s outside it. The mean of these is exactly the answers' mean: E h(x + noise) = x for every x
between the bounds. Under Gaussian noise no bounded function has this property. There, far reports are drawn
in, and the resulting largest bias is added. Both hold whatever law the answers have, for the answers as
clipped to the bounds.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from inference.false_reports.functionals import Functional, around, averaged
from inference.models.number import ANSWERS, cell_edges, cell_middles, channel_of
from inference.results.identified import Bounds
from inference.units import number_units
from ldp_client import Mechanism
from schemas import Question
from summaries import QuestionSummary

Vector = NDArray[np.float64]

# For Gaussian noise: how far beyond the bounds reports count unchanged, in sds, and stretching factors.
REACHES = np.linspace(0.0, 6.0, 31)
STRETCHES = np.linspace(1.0, 2.0, 21)


def mean_sets(
    question: Question,
    mechanism: Mechanism,
    summary: QuestionSummary,
    intervals: Mapping[str, tuple[float, float]],
    share: float,
) -> tuple[dict[str, Bounds], dict[str, str]]:
    """Return the set of the mean of the answers as clipped, in own units, and its description."""
    zero, unit = number_units(question)
    low, high = mean_bounds(mechanism, summary, share)
    own = around(zero + unit * low, zero + unit * high, intervals["mean"], (zero, zero + unit))
    return {"mean": own}, {"mean": "the mean of the answers, as clipped to the bounds,"}


def mean_bounds(mechanism: Mechanism, summary: QuestionSummary, share: float) -> tuple[float, float]:
    """Return the narrowest 90 % bounds of the mean over bounded functions of a report, bounds at 0 and 1."""
    edges, scale = cell_edges(mechanism)
    channel, answers = channel_of(mechanism, edges, scale), np.linspace(0, 1, ANSWERS)
    found = [
        averaged(values, summary.values, float(np.abs(channel @ values - answers).max()))
        for values in _functions(mechanism.name, cell_middles(edges, scale), scale)
    ]

    def width(one: Functional) -> float:
        spread = 2 * one.bias + float((one.high - one.low)[0])
        return spread + share * float((one.largest - one.least)[0])

    (low,), (high,) = min(found, key=width).bounds(share)
    return float(low), float(high)


def _functions(name: str, middles: Vector, scale: float) -> list[Vector]:
    """Return functions of a report, (cells,), each of whose means is about the answers' mean."""
    if name == "laplace":
        return [middles]
    drawn_in = [np.clip(middles, -reach * scale, 1 + reach * scale) - 0.5 for reach in REACHES]
    return [0.5 + stretch * one for one in drawn_in for stretch in STRETCHES]
