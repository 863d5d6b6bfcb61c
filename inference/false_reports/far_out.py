"""Test whether more reports are far out than noise can explain, whatever people answered."""

from __future__ import annotations

from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray

from inference.tail_probabilities import binomial_at_least, squares_beyond
from ldp_client import Mechanism
from summaries import QuestionSummary
from summaries.noise_tails import ENTRY_SDS, NORM_CHANCES, PARTS, SD, has_tails, reach_of

# The highest rate at which a question's honest reports are called false.
FALSE_ALARM = 1e-3
NOT_COUNTED = (
    "this summary does not show how far out single reports are, so a few false reports would be hidden: fit "
    "the file of reports, or a new summary from `ldpkit summarize`"
)


def false_report_reasons(mechanism: Mechanism, part: QuestionSummary) -> tuple[str, ...]:
    """Return reasons why the reports cannot all carry the study's stated noise; none if they can."""
    if part.tails is None or tails_p(mechanism, part.n, part.tails) > FALSE_ALARM:
        return ()
    return (
        "some reports are farther out than the noise can explain: they are false, or of another device. "
        "A few such reports move all estimates: find their senders before you use any number",
    )


def false_report_notes(mechanism: Mechanism, part: QuestionSummary) -> tuple[str, ...]:
    """Return a note if this could not be tested."""
    return (NOT_COUNTED,) if has_tails(mechanism) and part.n and part.tails is None else ()


def tails_p(mechanism: Mechanism, n: int, counts: NDArray[np.int64]) -> float:
    """Return an upper bound of P(counts as large as these), whatever n honest devices answer."""
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
    """Return P(noncentral χ² > total), by the χ² with the same first two moments (Patnaik 1949)."""
    if not degrees:
        return 1.0
    stretch = (degrees + 2 * centre) / (degrees + centre)
    return squares_beyond(total / stretch, (degrees + centre) / stretch)


def _entry_chance(sds: int, bound: float) -> float:
    """Return P(|s + noise| > bound + sds) for s at the bound, where it is largest."""
    return (erfc(sds / sqrt(2)) + erfc((sds + 2 * bound) / sqrt(2))) / 2
