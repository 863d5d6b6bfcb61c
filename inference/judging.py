"""From draws to a judged posterior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.results.diagnostics import Diagnostics, diagnose, is_fixed, listed
from inference.results.posterior import Posterior
from inference.results.prior_notes import (
    WIDER,
    contradictions,
    informativeness,
    leaning_notes,
    prior_notes,
)
from inference.results.verdict import Part
from inference.samplers import OTHER_REMEDY, SAMPLERS
from inference.sampling import Sampled
from schemas import Question, Study

Parameters = Mapping[str, NDArray[np.float64]]


class Drawing(NamedTuple):
    """drawn: what was drawn; parameters (chains, draws) of it; prior: as stated.

    prior_draws: (draws,) of the parameters that have a prior.
    """

    drawn: Sampled
    parameters: Parameters
    prior_draws: Parameters
    prior: Mapping[str, Any]
    notes: tuple[str, ...] = ()


def judged(study: Study, question: Question, drawing: Drawing, n: int, seed: int, method: str) -> Posterior:
    """The posterior of one question, with its diagnostics and without predictive checks."""
    before = {name: float(np.std(draws)) for name, draws in drawing.prior_draws.items()}
    prior_sd = {name: before.get(name, float("inf")) for name in drawing.parameters}
    return Posterior(
        question=question.id,
        model=question.model.name,
        n=n,
        draws=drawing.parameters,
        prior_sd=prior_sd,
        diagnostics=diagnosed(drawing, n, method),
        study_digest=study.digest,
        seed=seed,
        method=method,
        prior=drawing.prior,
        prior_draws=drawing.prior_draws,
        diverging=drawing.drawn.diverging if drawing.drawn.chained else None,
        questions=len(study.questions) if study.sample_one_question else 1,
    )


def diagnosed(
    drawing: Drawing,
    n: int,
    method: str,
    compared: tuple[Parameters, Parameters] | None = None,
    remedy: str = WIDER,
    learnt: Part | None = None,
) -> Diagnostics:
    """Judge the draws from n reports: their chains, and the parameters against their priors.

    compared: draws after and before the reports that are compared instead of the parameters. remedy: advice
    if a prior is wrong. learnt: the part on informativeness, if it is not that of the parameters.
    """
    drawn, after, before = drawing.drawn, drawing.parameters, drawing.prior_draws
    of_priors = compared or (after, before)
    return diagnose(
        after,
        drawn.diverging,
        n,
        (*drawing.notes, *prior_notes(*of_priors, remedy), *leaning_notes(after, drawing.prior)),
        (*drawn.reasons, *_stuck(drawing, method)),
        drawn.mixing,
        SAMPLERS[method].remedy if method in SAMPLERS else OTHER_REMEDY,
        drawn.chained,
        Part.of(contradictions(*of_priors, remedy)),
        learnt or informativeness(after, before, drawing.prior),
        drawn.may_diverge,
    )


def _stuck(drawing: Drawing, method: str) -> tuple[str, ...]:
    """A reason where a parameter that has a prior stands still in every chain, so that no R-hat tells.

    A published method may take a parameter as known. A share may be 0 or 1 to the last bit.
    """
    if method not in SAMPLERS:
        return ()
    names = [
        name
        for name, draws in drawing.parameters.items()
        if is_fixed(draws)
        and not is_fixed(drawing.prior_draws.get(name, np.zeros(1)))
        and float(np.median(draws)) not in (0.0, 1.0)
    ]
    if not names:
        return ()
    return (f"{listed(names)}: the sampler returned one value in every draw; try another seed",)
