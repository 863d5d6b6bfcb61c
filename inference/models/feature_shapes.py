"""Whether features can be normal, as the logistic models take them: else their coefficients are wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from inference.models.base import Draws
from inference.results.diagnostics import listed
from inference.units import RecordUnits
from schemas import Question

# A normal law with more than this beyond the bounds is not that of a feature which lies within them.
BEYOND = 0.05
# The posterior probability that it is more.
SURE = 0.95


def beyond_bounds(question: Question, draws: Draws) -> tuple[str, ...]:
    """A remark on features whose mean and sd no normal law within the bounds has; none of too few reports."""
    mean, sd = draws["feature_mean"], draws["feature_sd"]
    names = features_where(question, np.quantile(share_beyond(mean, sd), 1 - SURE, axis=(0, 1)) > BEYOND)
    if not names:
        return ()
    return (
        f"the model takes features as normal, which {listed(names)} cannot be: such a mean and sd are of "
        "answers that crowd at a bound, as of a yes/no. Logistic coefficients then come out too large, and "
        "large ones most: docs/models.md has figures",
    )


def share_beyond(mean: NDArray[np.float64], sd: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much of normal laws lies beyond −1…1."""
    return np.asarray(ndtr((-1 - mean) / sd) + ndtr((mean - 1) / sd))


def features_where(question: Question, odd: NDArray[np.bool_]) -> list[str]:
    """The names of the features that are odd, (d,)."""
    return [name for name, is_odd in zip(RecordUnits(question).names, odd, strict=True) if is_odd]
