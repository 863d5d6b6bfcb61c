"""A published method's draws as the posterior of a study's question."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.fit_model import fields_of, posterior_of
from inference.likelihoods.holders import HolderStatistics
from inference.models.holder_regression import ONE_SD, clipped_records_notes
from inference.models.record_sums import rows_of
from inference.models.regression import Scale
from inference.published import method_named
from inference.published.base import Method, Run
from inference.published.conjugate import ConjugatePrior, default_prior
from inference.results.posterior import Posterior
from inference.results.verdict import FIT, Finding, findings
from inference.sampling.space import PRIOR_DRAWS
from inference.seeds import seed_of
from inference.units import RecordUnits
from ldp_client.documents.errors import InputError
from schemas import Question, Study

Values = NDArray[np.float64]


def draw_published(
    study: Study,
    question: Question,
    statistics: HolderStatistics,
    seed: int,
    name: str,
    against: Callable[[Mapping[str, Values]], Iterable[str]],
    more: Iterable[Finding],
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
    before = _named(question, statistics, *prior_draws(method, prior, own_seed))
    if method.fixed_variance is not None:
        del before["sd"]
    notes = (ONE_SD, *clipped_records_notes(question, statistics, rows_of(statistics)))
    return posterior_of(
        drawn,
        parameters,
        before,
        (*findings(FIT, against(parameters)), *more),
        n=round(float(np.maximum(statistics.counts, 0).sum())),
        seed=seed,
        method=name,
        prior=_stated_prior(method, prior, question, statistics.intercept),
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
    return Scale(question).parameters(sites)


def prior_draws(method: Method, prior: ConjugatePrior, seed: int) -> tuple[Values, Values]:
    """Draw θ (draws, q) and σ² (draws,) before any data, in scaled units."""
    random = np.random.default_rng(seed)
    covariance = np.asarray(prior.theta_covariance)
    away = random.multivariate_normal(np.zeros(len(covariance)), covariance, PRIOR_DRAWS)
    variance = float(prior.rate) / random.gamma(float(prior.shape), size=PRIOR_DRAWS)
    if method.fixed_variance is not None:
        variance = np.full(PRIOR_DRAWS, method.fixed_variance)
    spread = np.sqrt(variance)[:, None] if method.in_sds else 1.0
    return np.asarray(prior.theta_mean) + spread * away, variance


def _stated_prior(
    method: Method, prior: ConjugatePrior, question: Question, intercept: bool
) -> Mapping[str, Any]:
    """Return the prior in own units, in the shape of a study's; `scale_over_sd` is in residual sds."""
    units = RecordUnits(question)
    middle, half = units.response
    sds, means = np.sqrt(np.diag(np.asarray(prior.theta_covariance))), np.asarray(prior.theta_mean)

    def normal(loc: float, sd: float) -> dict[str, Any]:
        name, scale = ("scale_over_sd", sd) if method.in_sds else ("scale", half * sd)
        return {"distribution": "normal", "loc": float(loc), name: float(scale)}

    slopes = zip(units.names, units.unit, means[int(intercept) :], sds[int(intercept) :], strict=True)
    stated: dict[str, Any] = {
        "coefficients": {name: normal(half / unit * mean, sd / unit) for name, unit, mean, sd in slopes}
    }
    if intercept:
        stated["centre"] = normal(middle + half * means[0], sds[0])
    if method.fixed_variance is not None:
        sd = half * float(np.sqrt(method.fixed_variance))
        return {**stated, "sd": {"distribution": "fixed", "value": sd}}
    scale = float(prior.rate) * half**2
    variance = {"distribution": "inverse_gamma", "shape": float(prior.shape), "scale": scale}
    return {**stated, "variance": variance}
