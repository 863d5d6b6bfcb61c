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
# Nor does it where all groups together are so much farther out than any simulated summary is.
MOST_STRAIN = 1.3


@dataclass(frozen=True)
class Predictive:
    """prior, posterior: (simulated, groups); observed: (groups,). Entries of a summary for each report."""

    prior: Shares
    posterior: Shares
    observed: Shares

    def inside(self, simulated: Shares) -> float:
        """The share of groups whose observed entry lies in the range of the simulated ones, or near it."""
        # A very wide prior has draws that are beyond floating point.
        simulated = simulated[np.isfinite(simulated).all(axis=1)]
        if not len(simulated):
            return 0.0
        low, high = simulated.min(axis=0), simulated.max(axis=0)
        slack = SLACK * (high - low) + 1e-9 * (1 + np.abs(self.observed))
        return float(np.mean((self.observed >= low - slack) & (self.observed <= high + slack)))

    def strain(self, simulated: Shares) -> float:
        """How far out the observed entries are together, in the distance of the farthest simulated ones.

        Distances are sums of squares over the groups, in the spread of the (other) simulated summaries.
        """
        count, middle = len(simulated), simulated.mean(axis=0)
        away = simulated - middle
        floor = 1e-9 * (1 + np.abs(self.observed))
        others_middle = -away / (count - 1)
        others_variance = (np.sum(away**2, axis=0) - away**2) / (count - 1) - others_middle**2
        own = np.sum((away - others_middle) ** 2 / np.maximum(others_variance, floor**2), axis=1)
        seen = np.sum((self.observed - middle) ** 2 / np.maximum(away.var(axis=0), floor**2))
        return float(seen / max(own.max(), 1e-9))

    @property
    def surprised(self) -> bool:
        """Whether what came lies outside what the prior expects."""
        return self.inside(self.prior) < FEW_INSIDE

    @property
    def misfit(self) -> bool:
        """Whether what came lies outside what the posterior expects."""
        return self.inside(self.posterior) < FEW_INSIDE or self.strain(self.posterior) > MOST_STRAIN

    def in_words(self) -> str:
        """One sentence on each of the two checks."""
        prior, after = (100 * self.inside(simulated) for simulated in (self.prior, self.posterior))
        first = f"The range of what the prior expects holds {prior:.0f} % of what was observed"
        first += ": what came surprises the prior." if self.surprised else ": it allows what came."
        second = f" After the fit, what the posterior expects holds {after:.0f} %"
        return first + second + (": the model does not fit." if self.misfit else ": no misfit shows.")

    def notes(self) -> tuple[str, ...]:
        """What must be said wherever the numbers stand; nothing where both checks are good."""
        found = []
        if self.surprised:
            found.append(
                "what came lies outside what the prior expects: look at the prior, and at the bounds"
            )
        if self.misfit:
            found.append("the model does not fit these reports: its intervals are those of another law")
        return tuple(found)
