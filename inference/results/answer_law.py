"""The distribution of the answers under models that give one: its density with a band."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

LEVELS = (0.05, 0.5, 0.95)


class Implied(NamedTuple):
    """Functions of a law's draws for answers between two bounds, in own units.

    above: returns the share of answers above a value, low ≤ value < high, at each draw (chains, draws).
    mean: returns the answers' mean at each draw.
    """

    low: float
    high: float
    above: Callable[[float], Values]
    mean: Callable[[], Values]


@dataclass(frozen=True)
class AnswerLaw:
    """edges (cells + 1,) in own units. density (3, cells): quantiles at LEVELS of the share per unit.

    at_bounds (3, 2): the same quantiles of the shares exactly at the lower and at the upper bound.
    """

    edges: Values
    density: Values
    at_bounds: Values

    @classmethod
    def of(cls, edges: Values, shares: Values) -> AnswerLaw:
        """Make the law from draws (…, cells + 2) of the shares of lower bound, cells and upper bound."""
        found = np.quantile(shares.reshape(-1, shares.shape[-1]), LEVELS, axis=0)
        return cls(edges, found[:, 1:-1] / np.diff(edges), found[:, [0, -1]])

    def to_document(self) -> dict[str, Any]:
        """Return the member `law` of a question in posterior.json."""
        names = [f"q{100 * level:02.0f}" for level in LEVELS]
        return {
            "edges": self.edges.tolist(),
            "density": dict(zip(names, self.density.tolist(), strict=True)),
            "at_bounds": dict(zip(names, self.at_bounds.tolist(), strict=True)),
        }

    def in_words(self) -> str:
        """Explain how to read the picture, and give the shares of answers at the bounds."""
        low, high = (f"{100 * q05:.0f} to {100 * q95:.0f} %" for q05, _, q95 in self.at_bounds.T)
        return (
            "The line is the median of the density, the band holds it with 90 % probability at each place. "
            f"At the lower bound itself are {low} of the answers, at the upper bound {high}. "
            "Answers heaped at round numbers are drawn as a hill: its quantiles lie between the heaps, and "
            "half of the answers at a place itself count as above it."
        )
