"""Whether more reports lie far out than noise can have put there, whatever people answered."""

from __future__ import annotations

from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray

from inference.chances import binomial_at_least, squares_beyond
from ldp_client import Mechanism
from summaries import QuestionSummary
from summaries.noise_tails import ENTRY_SDS, NORM_CHANCES, PARTS, SD, has_tails, reach_of

# Of honest reports a question's are called false so often at most.
FALSE_ALARM = 1e-3
NOT_COUNTED = (
    "this summary does not say how far out single reports lie, so that a few false ones would not show: fit "
    "the file of reports, or what `ldpkit summarize` makes of it"
)


def false_report_reasons(mechanism: Mechanism, part: QuestionSummary) -> tuple[str, ...]:
    """Why the reports cannot all carry the noise that the study states; nothing where they can."""
    if part.tails is None or tails_p(mechanism, part.n, part.tails) > FALSE_ALARM:
        return ()
    return (
        "some reports lie farther out than the noise puts anybody: they are false, or of another device, and "
        "a few of them move all estimates; find out who sent them before any number is used",
    )


def false_report_notes(mechanism: Mechanism, part: QuestionSummary) -> tuple[str, ...]:
    """A note where that could not be looked at."""
    return (NOT_COUNTED,) if has_tails(mechanism) and part.n and part.tails is None else ()


def tails_p(mechanism: Mechanism, n: int, counts: NDArray[np.int64]) -> float:
    """An upper bound of the probability of counts as large as these, whatever n honest devices answer."""
    reach = reach_of(mechanism)
    size = len(reach.bounds)
    entry = [float(np.mean([_entry_chance(sds, bound / SD) for bound in reach.bounds])) for sds in ENTRY_SDS]
    trials = [n * size] * len(ENTRY_SDS) + [n] * len(NORM_CHANCES)
    found = [
        float(binomial_at_least(count, tried, chance))
        for count, tried, chance in zip(counts, trials, (*entry, *NORM_CHANCES))
    ]
    found.append(_energy_p(float(counts[-1]) / PARTS**2, n * size, n * (reach.norm / SD) ** 2))
    return min(1.0, len(found) * min(found))


def _energy_p(total: float, degrees: float, centre: float) -> float:
    """P(noncentral χ² > total), by the χ² that has its first two moments (Patnaik 1949)."""
    if not degrees:
        return 1.0
    stretch = (degrees + 2 * centre) / (degrees + centre)
    return squares_beyond(total / stretch, (degrees + centre) / stretch)


def _entry_chance(sds: int, bound: float) -> float:
    """P(|s + noise| > bound + sds) is largest for s at the bound."""
    return (erfc(sds / sqrt(2)) + erfc((sds + 2 * bound) / sqrt(2))) / 2
