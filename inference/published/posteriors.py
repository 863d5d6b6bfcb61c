"""A published method's draws as the posterior of a study's question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from inference.fit_model import fields_of, posterior_of
from inference.likelihoods.holders.statistics import HolderStatistics
from inference.models.holder_regression import ONE_SD, clipped_records_notes, parameters_of
from inference.models.holders import rows_of
from inference.published import method_named
from inference.published.base import Method, Run
from inference.published.conjugate import ConjugatePrior, default_prior
from inference.results.posterior import Posterior
from inference.results.verdict import FIT, Finding, findings
from inference.seeds import seed_of
from ldp_client.documents.errors import InputError
from schemas import Question, Study

Values = NDArray[np.float64]


def draw_published(
    study: Study,
    question: Question,
    statistics: HolderStatistics,
    seed: int,
    name: str,
    against: Callable[[Mapping[str, Values]], Iterable[str]] = lambda _parameters: (),
    more: Iterable[Finding] = (),
) -> Posterior:
    """Draw by the method of that name, under `default_prior`.

    against: reasons against the model, from the parameters' draws. more: further findings.
    Raises InputError if the method is not for these statistics, or the study states a prior.
    """
    method = method_named(name)
    if question.model.prior:
        named = ", ".join(question.model.prior)
        raise InputError(
            f"{question.id}: {name} has a fixed prior, but the study states one on {named}: use marginal",
            code="prior.not_of_method",
        )
    if statistics.holders == 0:
        raise InputError(
            f"{question.id}: {name} needs reports: there are none", code="fit.method_needs_reports"
        )
    why = method.refuses(statistics)
    if why:
        raise InputError(
            f"{question.id}: {name} does not take these statistics: {why}", code="fit.method_statistics"
        )
    prior = default_prior(statistics.columns, statistics.features)
    own_seed = seed_of(seed, question.id, {"sums": statistics.sums})
    drawn = method.draw(statistics, prior, Run(own_seed))
    parameters = _named(question, statistics, drawn.sites["theta"], drawn.sites["variance"])
    before = _before(question, statistics, method, prior, own_seed)
    stated = method.prior.stated(question, statistics.intercept, prior)
    notes = (ONE_SD, *clipped_records_notes(question, statistics, rows_of(statistics)))
    return posterior_of(
        drawn,
        parameters,
        before,
        (*findings(FIT, against(parameters)), *more),
        n=round(float(np.maximum(statistics.counts, 0).sum())),
        seed=seed,
        method=name,
        prior=stated,
        notes=notes,
        **fields_of(study, question),
    )


def _named(
    question: Question, statistics: HolderStatistics, theta: Values, variance: Values
) -> dict[str, Values]:
    first = int(statistics.intercept)
    sites = {"coefficients": theta[..., first:], "sd": np.sqrt(variance)}
    if first:
        sites["intercept"] = theta[..., 0]
    return parameters_of(question, statistics.intercept)(sites)


def _before(
    question: Question, statistics: HolderStatistics, method: Method, prior: ConjugatePrior, seed: int
) -> dict[str, Values]:
    """Return prior draws of the parameters that have a prior."""
    drawn = method.prior.draws(prior, seed)
    if drawn is None:
        return {}
    found = _named(question, statistics, *drawn)
    if method.prior.fixed_variance is not None:
        del found["sd"]
    return found
