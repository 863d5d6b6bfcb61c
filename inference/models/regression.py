"""Common parts of all regressions: default priors, the sites drawn from them, and the scale of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpyro
from jax import Array
from numpy.typing import NDArray

from inference.default_priors import has_yes_no_response
from inference.models.base import Check, Draws
from inference.models.family import draw, priors_of
from inference.priors.correlations import CorrelationFactor
from inference.priors.laws import law, rescaled, vector_law
from inference.units import RecordUnits
from schemas import Question


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
