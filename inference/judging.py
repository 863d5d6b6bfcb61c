"""From draws to a judged posterior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.results.diagnostics import diagnose, is_fixed, listed
from inference.results.posterior import Posterior
from inference.results.prior_notes import contradictions, informativeness, leaning_notes, prior_notes
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
        diagnostics=diagnose(
            drawing.parameters,
            drawing.drawn.diverging,
            n,
            (
                *drawing.notes,
                *prior_notes(drawing.parameters, drawing.prior_draws),
                *leaning_notes(drawing.parameters, drawing.prior),
            ),
            (*drawing.drawn.reasons, *_stuck(drawing, method)),
            drawing.drawn.mixing,
            SAMPLERS[method].remedy if method in SAMPLERS else OTHER_REMEDY,
            drawing.drawn.chained,
            Part.of(contradictions(drawing.parameters, drawing.prior_draws)),
            informativeness(drawing.parameters, drawing.prior_draws, drawing.prior),
            drawing.drawn.may_diverge,
        ),
        study_digest=study.digest,
        seed=seed,
        method=method,
        prior=drawing.prior,
        prior_draws=drawing.prior_draws,
        diverging=drawing.drawn.diverging if drawing.drawn.chained else None,
        questions=len(study.questions) if study.sample_one_question else 1,
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
