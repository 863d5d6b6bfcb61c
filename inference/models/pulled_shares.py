"""Warnings that the prior of shares has moved a posterior by its own width or more.

A Dirichlet of total concentration A is worth A answers. Its weight in the posterior mean of each share, and
of every sum of shares, is A/(A + answers). Without it the mean would be farther from the prior mean by
A/answers times their distance. A 90 % interval moved by one posterior sd covers the truth in about 77 % of
studies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from inference.models.base import Fit
from inference.models.family import priors_of
from inference.models.scales import scale_draws
from inference.models.shares import prior_weight
from inference.results.diagnostics import is_fixed, listed
from inference.results.verdict import CARE, INFORMATIVENESS, Finding
from schemas import Question

# In the posterior's own sds.
MOVED = 1.0


def pulled(question: Question, answers: float, fit: Fit) -> Iterable[Finding]:
    """Return a reason if the prior moved shares, or a scale's statistics, by one posterior sd or more.

    answers: number of noiseless answers that the reports are worth. Shares below the prior's are left out:
    zero limits them under any prior.
    """
    stated = priors_of(question)["p"]["concentration"]
    if isinstance(stated, Mapping):
        return ()
    weight = prior_weight(question, answers)
    odds = weight / (1 - weight) if weight < 1 else np.inf
    moved = {
        name: odds * _pull(fit.parameters[name], mean, name.startswith("p["))
        for name, mean in _prior_means(question, stated).items()
        if not is_fixed(fit.parameters[name])
    }
    worst = max(moved.values(), default=0.0)
    if worst < MOVED:
        return ()
    found = [name for name, size in moved.items() if size >= MOVED]
    reason = (
        f"the prior has moved {listed(found)} by up to {worst:.1f} posterior sds, as it weighs "
        f"{100 * weight:.0f} %: a truth far from it lies outside these intervals too often; "
        "more devices or a larger epsilon are needed, or a prior that states existing knowledge"
    )
    return (Finding(INFORMATIVENESS, reason, CARE),)


def _pull(draws: NDArray[np.float64], mean: float, is_share: bool) -> float:
    away = float(draws.mean()) - mean
    return max(away, 0.0 if is_share else -away) / float(draws.std())


def _prior_means(question: Question, concentration: object) -> dict[str, float]:
    """Return the prior means of the shares, and of a scale's statistics."""
    each = np.broadcast_to(np.asarray(concentration, float), (len(question.choices),))
    shares = each / each.sum()
    found = {f"p[{label}]": float(shares[i]) for i, label in enumerate(question.choices)}
    return {**found, **{name: float(mean) for name, mean in scale_draws(question, {"p": shares}).items()}}
