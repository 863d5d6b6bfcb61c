"""A secure sum's total, its central noise, and a warning if its normal approximation is poor."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from ldp_client import Mechanism
from ldp_client.mechanisms.summed_gaussian import SQUARE_BOTTOM, SQUARE_TOP, SummedMechanism
from summaries import QuestionSummary

SQUARE_WEIGHT = SQUARE_TOP / SQUARE_BOTTOM
# A smaller expected count is not near enough to normal if the noise is small compared with it.
FEWEST_EXPECTED = 10.0


def total_of(mechanism: Mechanism, summary: QuestionSummary) -> tuple[int, float, NDArray[np.float64]]:
    """Return n, the total noise's sd and the values; sd and values in units of the statistic."""
    summed = cast(SummedMechanism, mechanism)
    return summary.n, summed.noise_sd * np.sqrt(max(summary.n, 1)), summary.values / summed.grid


def approximation_notes(n: int, noise_sd: float, values: NDArray[np.float64]) -> tuple[str, ...]:
    """Return a warning if some counts are too small for a normal law and the noise does not hide that."""
    if noise_sd**2 >= FEWEST_EXPECTED or values.min() >= FEWEST_EXPECTED or n == 0:
        return ()
    return ("some choices have few people and little noise: their intervals are approximate",)
