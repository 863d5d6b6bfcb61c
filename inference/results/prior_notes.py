"""What a posterior says of its prior: that the reports taught hardly anything, or that the two disagree."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from inference.results.diagnostics import is_fixed, listed

Parameters = Mapping[str, NDArray[np.float64]]

# A posterior sd above this share of the prior's, about where the prior is: the reports taught almost nothing.
DROWNED = 0.8
# In the prior's sds: farther off, the reports have moved the posterior.
NEAR = 1.0
# A posterior median with less of the prior than this beyond it, on its side, is far out. Of many parameters
# one is there by chance, so all share it.
FAR = 0.01


def prior_notes(parameters: Parameters, prior: Parameters) -> tuple[str, ...]:
    """Notes on draws (chains, draws) of each parameter beside draws (draws,) of its prior."""
    moving = {name: draws for name, draws in parameters.items() if not is_fixed(draws)}
    drowned = [name for name, draws in moving.items() if _drowned(draws, prior[name])]
    level = FAR / max(len(moving), 1)
    far = [name for name, draws in moving.items() if _beyond(draws, prior[name]) < level]
    notes = []
    if drowned:
        notes.append(
            f"the noise drowns the signal of {listed(drowned)}: the posterior is hardly narrower than the "
            "prior; more devices or a larger epsilon are needed"
        )
    if far:
        notes.append(
            f"prior and reports disagree about {listed(far)}: the posterior lies far out in the prior, as a "
            "compromise; state a wider prior if that one is wrong, or look for what the model leaves out"
        )
    return tuple(notes)


def _drowned(draws: NDArray[np.float64], prior: NDArray[np.float64]) -> bool:
    spread = prior.std()
    near = abs(draws.mean() - prior.mean()) < NEAR * spread
    return bool(near and draws.std() > DROWNED * spread)


def _beyond(draws: NDArray[np.float64], prior: NDArray[np.float64]) -> float:
    """How much of the prior lies beyond the posterior's median, and no less than its draws can tell."""
    middle = np.median(draws)
    below, above = float(np.mean(prior <= middle)), float(np.mean(prior >= middle))
    return max(min(below, above), 1 / len(prior))
