"""A published method's draws as the posterior of a study's question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.judging import Drawing, judged, seed_of
from inference.methods import method_named
from inference.methods.base import Run
from inference.methods.conjugate import ConjugatePrior, default_prior
from inference.methods.statistics import HolderStatistics
from inference.models.holder_notes import clipped_records_notes
from inference.models.holder_regression import parameters_of
from inference.models.holders import rows_of
from inference.results.posterior import Posterior
from inference.sampling import PRIOR_DRAWS
from inference.units import RecordUnits
from schemas import Question, Study
from schemas.errors import InputError

Values = NDArray[np.float64]


def draw_published(
    study: Study, question: Question, statistics: HolderStatistics, seed: int, name: str
) -> Posterior:
    """Draws by the method of that name, under `default_prior`.

    Raises InputError where the method is not for these statistics, or the study states a prior.
    """
    method = method_named(name)
    if question.model.prior:
        stated = ", ".join(question.model.prior)
        raise InputError(
            f"{question.id}: {name} has a prior of its own, the study states one of {stated}: use marginal"
        )
    if statistics.holders == 0:
        raise InputError(f"{question.id}: {name} needs reports: there are none")
    why = method.refuses(statistics)
    if why:
        raise InputError(f"{question.id}: {name} does not take these statistics: {why}")
    prior = default_prior(statistics.columns, statistics.features)
    own_seed = seed_of(question, seed)
    drawn = method.draw(statistics, prior, Run(own_seed))
    parameters = _named(question, statistics, drawn.sites["theta"], drawn.sites["variance"])
    before = _named(question, statistics, *_prior_draws(prior, own_seed))
    notes = clipped_records_notes(question, statistics, rows_of(statistics))
    drawing = Drawing(drawn, parameters, before, _prior_in_own_units(question, statistics, prior), notes)
    n = round(float(np.maximum(statistics.counts, 0).sum()))
    return judged(study, question, drawing, n, seed, name)


def _named(
    question: Question, statistics: HolderStatistics, theta: Values, variance: Values
) -> dict[str, Values]:
    first = int(statistics.intercept)
    sites = {"coefficients": theta[..., first:], "sd": np.sqrt(variance)}
    if first:
        sites["intercept"] = theta[..., 0]
    return parameters_of(question, statistics.intercept)(sites)


def _prior_draws(prior: ConjugatePrior, seed: int) -> tuple[Values, Values]:
    random = np.random.default_rng(seed)
    covariance = np.asarray(prior.theta_covariance)
    theta = random.multivariate_normal(np.asarray(prior.theta_mean), covariance, PRIOR_DRAWS)
    return theta, float(prior.rate) / random.gamma(float(prior.shape), size=PRIOR_DRAWS)


def _prior_in_own_units(
    question: Question, statistics: HolderStatistics, prior: ConjugatePrior
) -> Mapping[str, Any]:
    """The priors of the line and of sd², in the shape of a study's."""
    units, first = RecordUnits(question), int(statistics.intercept)
    middle, half = units.response
    sds = np.sqrt(np.diag(np.asarray(prior.theta_covariance)))
    lengths = half / units.unit * sds[first:]
    stated: dict[str, Any] = {
        "coefficients": {
            name: {"distribution": "normal", "loc": 0.0, "scale": float(length)}
            for name, length in zip(units.names, lengths, strict=True)
        },
        "variance": {
            "distribution": "inverse_gamma",
            "shape": float(prior.shape),
            "scale": float(prior.rate) * half**2,
        },
    }
    if first:
        stated["centre"] = {"distribution": "normal", "loc": middle, "scale": half * float(sds[0])}
    return stated
