"""What prior and posterior expect of a summary, beside the one that came, and what to say of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from inference.results.goodness import FALSE_ALARM

Shares = NDArray[np.float64]

# Beyond the simulated range by more than this part of it counts as outside.
SLACK = 0.1
# With fewer groups inside, the prior is surprised, or the model does not fit.
FEW_INSIDE = 0.6
# Nor does it where all groups together are so much farther out than any simulated summary is, and are so
# improbable by the gamma law with the simulated ones' mean and variance: of sound models at most one in a
# thousand is there, as 60 simulated summaries tell that law no better.
MOST_STRAIN, LEAST_CHANCE = 1.3, 1e-4


@dataclass(frozen=True)
class Predictive:
    """prior, posterior: (simulated, groups); observed: (groups,). Entries of a summary for each report.

    fit_p: the p-value of a test of the whole histogram, where there is one; it decides then. tells_laws:
    whether these reports would show a law of another shape.
    """

    prior: Shares
    posterior: Shares
    observed: Shares
    fit_p: float | None = None
    tells_laws: bool = True

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
        """How far out the observed entries are together, in the distance of the farthest simulated ones."""
        own, seen = self._distances(simulated)
        return float(seen / max(own.max(), 1e-9))

    def chance(self, simulated: Shares) -> float:
        """The probability of entries as far out together, by the gamma law that fits simulated distances."""
        own, seen = self._distances(simulated)
        mean, variance = float(own.mean()), max(float(own.var(ddof=1)), 1e-18)
        return float(stats.gamma.sf(seen, max(mean**2, 1e-18) / variance, scale=variance / max(mean, 1e-9)))

    def _distances(self, simulated: Shares) -> tuple[Shares, float]:
        """Of every simulated summary, and of the observed one.

        Sums of squares over the groups and their total, in the spread of the (other) simulated summaries.
        """
        simulated, observed = _with_total(simulated), _with_total(self.observed)
        count, middle = len(simulated), simulated.mean(axis=0)
        away = simulated - middle
        floor = 1e-9 * (1 + np.abs(observed))
        others_middle = -away / (count - 1)
        others_variance = (np.sum(away**2, axis=0) - away**2) / (count - 1) - others_middle**2
        own = np.sum((away - others_middle) ** 2 / np.maximum(others_variance, floor**2), axis=1)
        seen = np.sum((observed - middle) ** 2 / np.maximum(away.var(axis=0), floor**2))
        return own, float(seen)

    @property
    def surprised(self) -> bool:
        """Whether what came lies outside what the prior expects."""
        return self.inside(self.prior) < FEW_INSIDE

    @property
    def misfit(self) -> bool:
        """Whether what came lies outside what the posterior expects: of sound models, once in a thousand."""
        if self.fit_p is not None:
            return self.fit_p < FALSE_ALARM
        return self.strain(self.posterior) > MOST_STRAIN and self.chance(self.posterior) < LEAST_CHANCE

    def in_words(self) -> str:
        """One sentence on each of the two checks."""
        prior, after = (100 * self.inside(simulated) for simulated in (self.prior, self.posterior))
        first = f"The range of what the prior expects holds {prior:.0f} % of what was observed"
        first += ": what came surprises the prior." if self.surprised else ": it allows what came."
        second = f" After the fit, what the posterior expects holds {after:.0f} %"
        return first + second + (": the model does not fit." if self.misfit else ": no misfit shows.")

    def notes(self) -> tuple[str, ...]:
        """What must be said wherever the numbers stand, of the prior; nothing where it allows what came."""
        found = []
        if self.surprised:
            found.append(
                "what came lies outside what the prior expects: look at the prior, and at the bounds"
            )
        if not (self.tells_laws or self.misfit):
            found.append(
                "these reports are too few, under so much noise, to tell the law from one of two groups "
                "of people: intervals hold if the answers follow it, and nothing here could show "
                "that they do not"
            )
        return tuple(found)

    def reasons(self) -> tuple[str, ...]:
        """Why the model is not to be believed; nothing where it expects what came."""
        if not self.misfit:
            return ()
        return ("the model does not fit these reports: its intervals are those of another law",)


def _with_total(entries: Shares) -> Shares:
    """Entries (…, groups) and their total: how many bits a report has in all each of many groups hides."""
    total = entries.sum(axis=-1, keepdims=True)
    return np.concatenate([entries, total], axis=-1) if entries.shape[-1] > 1 else entries
