"""The mean of numbers if some reports were false, from bounded functions of a report.

Under Laplace noise of scale s, a report between the bounds counts unchanged, and a report beyond a bound
counts as s outside it. The mean of these is exactly the answers' mean: E h(x + noise) = x for every x
between the bounds. Under Gaussian noise no bounded function has this property. There, far reports are drawn
in, and the resulting largest bias is added. Both hold whatever law the answers have, for the answers as
clipped to the bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    units = number_units(question)
    low, high = units.zero + units.unit * np.asarray(Histogram.of(mechanism, summary).mean_set(share))
    found = around(float(low), float(high), intervals["mean"], (units.zero, units.zero + units.unit))
    return {"mean": found}, {"mean": "the mean of the answers, as clipped to the bounds,"}


@dataclass(frozen=True)
class Histogram:
    """Reports of one number, with the bounds at 0 and 1.

    n: of reports. weights (cells,): their shares. middles (cells,): their values. channel (answers, cells).
    scale: of the noise.
    """

    name: str
    n: int
    weights: Vector
    middles: Vector
    channel: Vector
    scale: float

    @classmethod
    def of(cls, mechanism: Mechanism, summary: QuestionSummary) -> Histogram:
        """Return the histogram of a question's summary."""
        edges, scale = cell_edges(mechanism)
        channel = channel_of(mechanism, edges, scale)
        weights = summary.values / max(summary.n, 1)
        return cls(mechanism.name, summary.n, weights, cell_middles(edges, scale), channel, scale)

    def mean_set(self, share: float) -> tuple[float, float]:
        """Return the 90 % set of the mean."""
        return self._best(share, self._means(), np.linspace(0, 1, ANSWERS))

    def _best(self, share: float, candidates: list[Vector], truth: Vector) -> tuple[float, float]:
        """Return the narrowest bounds over functions (cells,). truth (answers,): each answer's quantity."""
        best, cost = None, np.inf
        for values in candidates:
            found = self._functional(values, truth)
            spread = 2 * found.bias + float((found.high - found.low)[0])
            wide = spread + share * float((found.largest - found.least)[0])
            if wide < cost:
                best, cost = found, wide
        assert best is not None
        low, high = best.bounds(share)
        return float(low[0]), float(high[0])

    def _functional(self, values: Vector, truth: Vector) -> Functional:
        bias = float(np.abs(self.channel @ values - truth).max())
        least, largest = float(values.min()), float(values.max())
        return averaged(values, self.weights, max(self.n, 1), least, largest, bias)

    def _means(self) -> list[Vector]:
        if self.name == "laplace":
            return [self.middles]
        drawn_in = [
            np.clip(self.middles, -reach * self.scale, 1 + reach * self.scale) - 0.5 for reach in REACHES
        ]
        return [0.5 + stretch * one for one in drawn_in for stretch in STRETCHES]
