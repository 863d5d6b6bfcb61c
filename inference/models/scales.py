"""Statistics of a scale: cumulative shares of its levels, and the mean of people's places.

Both are sums of shares, computed from draws of the shares. The shares have the same law and prior as for any
choice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inference.models.base import Draws
from inference.results.intervals import AT_MOST, PLACE
from schemas import Question


def scale_draws(question: Question, draws: Draws) -> dict[str, NDArray[np.float64]]:
    """Return at_most[level] for each level but the last, and the mean place from 1, from draws of p."""
    if not question.ordered:
        return {}
    shares = np.asarray(draws["p"], np.float64)
    below = np.cumsum(shares, axis=-1)
    found = {f"{AT_MOST}[{label}]": below[..., i] for i, label in enumerate(question.choices[:-1])}
    return {**found, PLACE: shares @ np.arange(1.0, shares.shape[-1] + 1)}
