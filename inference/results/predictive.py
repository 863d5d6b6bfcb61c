"""What prior and posterior expect of a summary, beside the one that came, and what to say of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Shares = NDArray[np.float64]

# Beyond the simulated range by more than this part of it counts as outside.
SLACK = 0.1
# With fewer groups inside, the prior is surprised, or the model does not fit.
FEW_INSIDE = 0.6


@dataclass(frozen=True)
class Predictive:
    """prior, posterior: (simulated, groups); observed: (groups,). Entries of a summary for each report."""

    prior: Shares
    posterior: Shares
    observed: Shares

    def inside(self, simulated: Shares) -> float:
        """The share of groups whose observed entry lies in the range of the simulated ones, or near it."""
        low, high = simulated.min(axis=0), simulated.max(axis=0)
        slack = SLACK * (high - low) + 1e-9 * (1 + np.abs(self.observed))
        return float(np.mean((self.observed >= low - slack) & (self.observed <= high + slack)))

    def in_words(self) -> str:
        """One sentence on each of the two checks."""
        prior = self.inside(self.prior)
        after = self.inside(self.posterior)
        first = f"The range of what the prior expects holds {100 * prior:.0f} % of what was observed"
        first += ": it allows what came." if prior >= FEW_INSIDE else ": what came surprises the prior."
        second = f" After the fit, what the posterior expects holds {100 * after:.0f} %"
        return (
            first
            + second
            + (": the model fits." if after >= FEW_INSIDE else ": the model does not fit these reports well.")
        )
