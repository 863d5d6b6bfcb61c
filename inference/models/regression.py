"""Common parts of all regressions: default priors, the sites drawn from them, and the scale of records."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
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
        """Return intercept, coefficient[feature] and, for a linear model, sd in own units.

        Without an intercept the line passes through the middle of all bounds.
        """
        slopes = draws["coefficients"] * self.response.unit / self.unit
        named: dict[str, NDArray[np.float64]] = {}
        if "intercept" in draws:
            middle = self.response.zero + self.response.unit * draws["intercept"]
            named["intercept"] = middle - slopes @ self.zero
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


def draw_line(question: Question) -> Regression:
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


def normal_features(question: Question, central: bool = False) -> tuple[Array, Array]:
    """Draw mean (d,) and covariance (d, d) of normal features, as the sites feature_mean and feature_sd.

    A yes/no's variance follows from its mean, as its square is 1. central: the mean is 0.
    """
    units, priors = RecordUnits(question), priors_of(question)
    yes_no = np.asarray([field.bounds is None for field in question.features])
    mean, sd = jnp.zeros(len(yes_no)), jnp.zeros(len(yes_no))
    if not yes_no.all():
        zero, unit = units.zero[~yes_no], units.unit[~yes_no]
        means, sds = (list(priors[name].values()) for name in ("feature_mean", "feature_sd"))
        if not central:
            mean = mean.at[~yes_no].set(numpyro.sample("number_mean", vector_law(means, zero, unit)))
        sd = sd.at[~yes_no].set(numpyro.sample("number_sd", vector_law(sds, 0 * unit, unit)))
    if yes_no.any():
        ones = np.ones(int(yes_no.sum()))
        share = numpyro.sample("share", dist.Beta(ones, ones).to_event(1))
        mean = mean.at[yes_no].set(2 * share - 1)
        sd = sd.at[yes_no].set(2 * jnp.sqrt(share * (1 - share)))
    numpyro.deterministic("feature_mean", mean)
    scale = numpyro.deterministic("feature_sd", sd)
    if len(yes_no) == 1:
        return mean, (scale**2)[:, None]
    lkj = CorrelationFactor(len(yes_no), priors["feature_correlation"]["concentration"])
    factor = scale[:, None] * numpyro.sample("feature_correlation", lkj)
    return mean, factor @ factor.T


def first_line(question: Question) -> dict[str, object]:
    """Return starting values of the line: no slope."""
    start: dict[str, object] = {
        "intercept": 0.0,
        "coefficients": np.zeros(len(RecordUnits(question).names)),
    }
    return start if has_yes_no_response(question) else {**start, "sd": 0.5}


def first_values(question: Question, central: bool = False) -> dict[str, object]:
    """Return starting values: no slope, features about the middle of their bounds. See `draw_sites`."""
    d = len(question.features)
    numbers = sum(field.bounds is not None for field in question.features)
    start = first_line(question)
    if numbers:
        start |= {"number_mean": np.zeros(numbers), "number_sd": np.full(numbers, 0.5)}
    if numbers < d:
        start["share"] = np.full(d - numbers, 0.5)
    # A site that does not exist would be sampled without a law.
    absent = ("intercept", "number_mean") if central else ()
    start = {name: value for name, value in start.items() if name not in absent}
    return {**start, "feature_correlation": np.eye(d)} if d > 1 else start


def draw_sites(question: Question, central: bool = False) -> dict[str, Any]:
    """Draw all parameters from their priors, named as the arguments of `linear_moments`.

    central: the means of the features, and so of the response, are 0.
    """
    slopes = {"intercept": 0.0, "coefficients": coefficients(question)} if central else None
    line = slopes or draw_line(question)._asdict()
    mean, covariance = normal_features(question, central)
    sd = {} if has_yes_no_response(question) else {"sd": residual_sd(question)}
    return {**line, "feature_mean": mean, "feature_covariance": covariance, **sd}
