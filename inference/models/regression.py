"""Common parts of all regressions: default priors, the sites drawn from them, and the scale of records."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpyro
from jax import Array
from numpy.typing import NDArray

from inference.models.base import Check, Draws
from inference.models.family import Priors, draw, priors_of
from inference.priors.correlations import CorrelationFactor
from inference.priors.laws import law, rescaled, state, vector_law
from inference.units import RecordUnits, field_units, has_levels
from schemas import Question

# Prior sd of the change in log odds along half the bounds of a number, or from no to yes: about two of a
# feature's sds (Gelman, Jakulin, Pittau & Su 2008).
LOG_ODDS = 2.5


class Scale(RecordUnits):
    """Converts a record's own units to features and response in [−1, 1], and back."""

    def parameters(self, draws: Draws) -> dict[str, NDArray[np.float64]]:
        """Return intercept, coefficient[feature] and, for a linear model, sd in own units."""
        slopes = draws["coefficients"] * self.response.unit / self.unit
        intercept = self.response.zero + self.response.unit * draws["intercept"] - slopes @ self.zero
        named = {"intercept": intercept}
        named |= {f"coefficient[{name}]": slopes[..., i] for i, name in enumerate(self.names)}
        if "sd" in draws:
            named["sd"] = self.response.unit * draws["sd"]
        return named


def regression_priors(question: Question) -> Priors:
    """Return priors under which the response changes by at most a few half widths along a feature's bounds.

    In a table, slopes have an sd of 1/r for scaled feature vectors of length at most r. They explain at most
    the response's whole range: E[(θᵀx)²] = E‖x‖²/r² ≤ 1, with the response in −1…1. The norm limits each
    feature to about r/√d, instead of 1.

    With levels of features, slopes of a logistic regression are as steep as most in practice. Signs from a
    few thousand people carry little information on each slope; a prior of sd 1 would dominate. Features with
    levels have a law of cells. Else numbers have priors of mean and sd, and a yes/no has a share, with a
    uniform prior.
    """
    units, cells = RecordUnits(question), has_levels(question)
    middle, half = units.response
    longest = size = 1.0
    if question.ask == "table":
        d = len(question.features)
        longest = min(float(question.norm or 1), math.sqrt(d))
        size = longest / math.sqrt(d)
    slopes = {
        name: half / unit / longest for name, unit in zip(units.owners, units.unit.tolist(), strict=True)
    }
    yes_no = has_yes_no_response(question)
    if cells and yes_no:
        spans = {field.id: field_units(field).unit if field.bounds else 1.0 for field in question.features}
        slopes = {name: LOG_ODDS / span for name, span in spans.items()}
    numbers = [(field.id, *field_units(field)) for field in question.features if field.bounds and not cells]
    priors = {
        "centre": state("normal", loc=middle, scale=half),
        "coefficients": {name: state("normal", loc=0.0, scale=scale) for name, scale in slopes.items()},
        "feature_mean": {
            name: state("normal", loc=zero, scale=size * unit / 2) for name, zero, unit in numbers
        },
        "feature_sd": {
            name: state("gamma", shape=2.0, rate=4.0 / (size * unit)) for name, _, unit in numbers
        },
    }
    if numbers or not (cells or yes_no):
        priors["feature_correlation"] = state("lkj", concentration=2.0)
    return priors if yes_no else {**priors, "sd": state("gamma", shape=2.0, rate=4.0 / half)}


class Regression(NamedTuple):
    """Intercept (): the response at the middle of the features' bounds. Coefficients (d,)."""

    intercept: Array
    coefficients: Array


class Features(NamedTuple):
    """A law of features for regressions from the signs of sampled products.

    draw: draws the law's sites inside a NumPyro program. moments: (line, residual sd or None, what was drawn)
    -> M = E[uuᵀ], u = (1, entries, response) in scaled units. initial: starting values. parameters: draws of
    the sites, with M as `second` -> {name: draws} in own units.
    """

    draw: Callable[[], tuple[Any, ...]]
    moments: Callable[..., Array]
    initial: dict[str, object]
    parameters: Callable[[Draws], dict[str, NDArray[np.float64]]]
    notes: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()


def regression(question: Question) -> Regression:
    """Draw intercept and coefficients, with features and response in [−1, 1]."""
    units = RecordUnits(question)
    middle = law(rescaled(priors_of(question)["centre"], *units.response))
    return Regression(numpyro.sample("intercept", middle), coefficients(question))


def coefficients(question: Question) -> Array:
    """Draw a slope for each column of the features, (d,)."""
    units, priors = RecordUnits(question), priors_of(question)["coefficients"]
    slopes = [priors[name] for name in units.owners]
    own = units.response.unit / units.unit
    return numpyro.sample("coefficients", vector_law(slopes, 0 * own, own))


def residual_sd(question: Question) -> Array:
    """Draw the sd of a linear regression's response given the features."""
    return draw(question, "sd", unit=RecordUnits(question).response.unit)


def features(question: Question) -> tuple[Array, Array]:
    """Draw mean (d,) and covariance (d, d) of the features."""
    units, priors = RecordUnits(question), priors_of(question)["feature_mean"]
    means = [priors[name] for name in units.names]
    mean = numpyro.sample("feature_mean", vector_law(means, units.zero, units.unit))
    return mean, feature_covariance(question)


def feature_covariance(question: Question) -> Array:
    """Draw the covariance (d, d) of the features: a scaled correlation matrix."""
    units, priors = RecordUnits(question), priors_of(question)
    sds = [priors["feature_sd"][name] for name in units.names]
    return correlated(question, numpyro.sample("feature_sd", vector_law(sds, 0 * units.zero, units.unit)))


def correlated(question: Question, scale: Array) -> Array:
    """Draw the correlations of the features; return their covariance (d, d), given their sds (d,)."""
    if len(scale) == 1:
        return (scale**2)[:, None]
    lkj = CorrelationFactor(len(scale), priors_of(question)["feature_correlation"]["concentration"])
    factor = scale[:, None] * numpyro.sample("feature_correlation", lkj)
    return factor @ factor.T


def first_line(question: Question) -> dict[str, object]:
    """Return starting values of the line: no slope."""
    start: dict[str, object] = {
        "intercept": 0.0,
        "coefficients": np.zeros(len(RecordUnits(question).names)),
    }
    return start if has_yes_no_response(question) else {**start, "sd": 0.5}


def first_values(question: Question) -> dict[str, object]:
    """Return starting values: no slope, features about the middle of their bounds."""
    d = len(question.features)
    start = {**first_line(question), "feature_mean": np.zeros(d), "feature_sd": np.full(d, 0.5)}
    # With one feature this site does not exist, and its value would be sampled without a law.
    return {**start, "feature_correlation": np.eye(d)} if d > 1 else start


def draw_sites(question: Question) -> dict[str, Any]:
    """Draw all parameters from their priors, named as the likelihood's arguments."""
    line = regression(question)
    mean, covariance = features(question)
    arguments: dict[str, Any] = {
        **line._asdict(),
        "feature_mean": mean,
        "feature_covariance": covariance,
    }
    if not has_yes_no_response(question):
        arguments["sd"] = residual_sd(question)
    return arguments


def has_yes_no_response(question: Question) -> bool:
    """Return True if the response is a yes/no, so that the regression is logistic."""
    return question.response is not None and question.response.bounds is None
