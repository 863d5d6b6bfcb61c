"""A study's linear regression for data holders: its own priors on the holders' likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from inference.likelihoods.holders.law import second_moments
from inference.likelihoods.holders.statistics import HolderStatistics
from inference.models.base import Draws, Model
from inference.models.holder_notes import clipped_records_notes, small_holders_note
from inference.models.holder_start import Start, moment_start
from inference.models.holders import observe, observed, refusal, rows_of
from inference.models.regression import Scale, coefficients, draw_sites, feature_covariance, residual_sd
from ldp_client.documents.errors import InputError
from schemas import Question


def holder_regression(question: Question, statistics: HolderStatistics) -> Model:
    """y | x ~ Normal(intercept + coefficients·x, sd), x ~ Normal(mean, covariance).

    Without an intercept both means are 0, at the middle of the bounds, as the papers have it: the sums say
    nothing of them. Raises InputError for statistics or priors that there is no likelihood for.
    """
    _check(question, statistics)
    found = observed(statistics)
    constant, average = statistics.intercept, statistics.average

    def program(n: int, statistics: Array, **data: Array) -> None:
        del n
        sites = draw_sites(question, True) if constant else _central_sites(question)
        second = second_moments(**sites, constant=constant, average=average)
        observe(found.law(second, data), jnp.asarray(statistics))

    counted = rows_of(statistics)
    rows = counted.expected
    n = round(float(rows.sum()) * average)
    start = moment_start(statistics, rows)
    initial = {**_initial(start, constant), **found.initial}
    return Model(
        program,
        {"n": n, **found.data},
        initial,
        parameters_of(question, constant),
        (*clipped_records_notes(question, statistics, counted), *small_holders_note(statistics, rows)),
        target_acceptance=found.target_acceptance,
    )


def _check(question: Question, statistics: HolderStatistics) -> None:
    why = refusal(statistics)
    if why:
        raise InputError(f"{question.id}: marginal does not take these statistics: {why}")
    if not statistics.intercept and "feature_mean" in question.model.prior:
        raise InputError(f"{question.id}: a prior of feature_mean needs statistics with an intercept")


def _central_sites(question: Question) -> dict[str, Any]:
    return {
        "intercept": 0.0,
        "coefficients": coefficients(question),
        "feature_mean": 0.0,
        "feature_covariance": feature_covariance(question),
        "sd": residual_sd(question),
    }


def _initial(start: Start, constant: bool) -> dict[str, object]:
    spread = np.sqrt(np.diag(start.feature_covariance))
    correlation = start.feature_covariance / np.outer(spread, spread)
    # A little less than found: the edge of what is possible is no place to start from.
    correlation = 0.9 * correlation + 0.1 * np.eye(len(spread))
    initial: dict[str, object] = {"coefficients": start.coefficients, "sd": start.sd, "feature_sd": spread}
    if len(spread) > 1:
        initial["feature_correlation"] = np.linalg.cholesky(correlation)
    if constant:
        initial |= {"intercept": start.intercept, "feature_mean": start.feature_mean}
    return initial


def parameters_of(question: Question, constant: bool) -> Callable[[Draws], dict[str, NDArray[np.float64]]]:
    """From draws in scaled units to intercept, coefficient[feature] and sd in own units.

    Without a constant the line goes through the middle of all bounds: then no intercept is named.
    """
    scale = Scale(question)

    def parameters(draws: Draws) -> dict[str, NDArray[np.float64]]:
        shape = np.asarray(draws["coefficients"]).shape[:-1]
        named = scale.parameters({"intercept": np.zeros(shape), **draws})
        if not constant:
            del named["intercept"]
        return named

    return parameters
