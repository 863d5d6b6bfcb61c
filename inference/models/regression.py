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
from inference.units import RecordUnits, has_levels
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


def linear_priors(question: Question) -> Priors:
    """Return priors under which the response rises by at most a few half widths along a feature's bounds."""
    units = RecordUnits(question)
    lines = _table_line(question) if question.ask == "table" else _line(question, longest=1.0, size=1.0)
    return {**lines, "sd": state("gamma", shape=2.0, rate=4.0 / units.response.unit)}


def _table_line(question: Question) -> Priors:
    """Return priors of a table's line: slopes of sd 1/r, for scaled feature vectors of length at most r.

    They explain at most the response's whole range: E[(θᵀx)²] = E‖x‖²/r² ≤ 1, with the response in −1…1. The
    norm limits each feature to about r/√d, instead of 1.
    """
    d = len(question.features)
    longest = min(float(question.norm or 1), math.sqrt(d))
    return _line(question, longest, longest / math.sqrt(d))


def logistic_priors(question: Question) -> Priors:
    """Return priors whose slopes, for features with levels, allow effects as steep as most in practice.

    Signs from a few thousand people carry little information on each slope; a prior of sd 1 would dominate.
    """
    found = _line(question, longest=1.0, size=1.0)
    if not has_levels(question):
        return found
    units = RecordUnits(question)
    numbers = {field.id for field in question.features if field.bounds}
    spans = {
        name: unit if name in numbers else 1.0 for name, unit in zip(units.owners, units.unit, strict=True)
    }
    slopes = {name: state("normal", loc=0.0, scale=LOG_ODDS / span) for name, span in spans.items()}
    return {**found, "coefficients": slopes}


def _line(question: Question, longest: float, size: float) -> Priors:
    """Return a line's priors. longest: length of a scaled feature vector. size: of a scaled feature, at most.

    Only numbers have priors of mean and sd. A yes/no has a share, with a uniform prior.
    """
    units = RecordUnits(question)
    middle, half = units.response
    spans = list(zip(units.owners, units.zero.tolist(), units.unit.tolist(), strict=True))
    # Features with levels have a law of cells, without means and sds.
    cells = has_levels(question)
    numbers = [
        span for span, field in zip(spans, question.features, strict=False) if field.bounds and not cells
    ]
    slopes = dict(zip(units.owners, units.unit.tolist(), strict=True))
    joint = numbers or (not cells and question.response is not None and question.response.bounds is not None)
    return {
        "centre": state("normal", loc=middle, scale=half),
        "coefficients": {
            name: state("normal", loc=0.0, scale=half / unit / longest) for name, unit in slopes.items()
        },
        "feature_mean": {
            name: state("normal", loc=zero, scale=size * unit / 2) for name, zero, unit in numbers
        },
        "feature_sd": {
            name: state("gamma", shape=2.0, rate=4.0 / (size * unit)) for name, _, unit in numbers
        },
        **({"feature_correlation": state("lkj", concentration=2.0)} if joint else {}),
    }


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
    return Regression(centre(question), coefficients(question))


def centre(question: Question) -> Array:
    """Draw the response at the middle of the features' bounds."""
    stated = priors_of(question)["centre"]
    return numpyro.sample("intercept", law(rescaled(stated, *RecordUnits(question).response)))


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
