"""Drawing a model's parameters from their priors inside a NumPyro program, in scaled units.

Each function draws the sites of one model; private and non-private fits share them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array

from inference.priors.defaults import priors_of
from inference.priors.laws import law, rescaled, simplex_law, vector_law
from inference.priors.ordered_simplex import OrderedDirichlet
from inference.units import RecordUnits, field_units, fields_of, number_units
from schemas import Question


def draw(question: Question, name: str, zero: float = 0.0, unit: float = 1.0) -> Array:
    """The site `name`: the parameter of that name is zero + unit × site in own units."""
    return numpyro.sample(name, law(rescaled(priors_of(question)[name], zero, unit)))


def normal(question: Question) -> tuple[Array, Array]:
    """Mean and sd."""
    low, width = number_units(question)
    return draw(question, "mean", low, width), draw(question, "sd", unit=width)


def exponential(question: Question) -> Array:
    """Rate, for the distance between the bounds as unit."""
    return draw(question, "rate", unit=1 / number_units(question).unit)


def lognormal(question: Question) -> tuple[Array, Array]:
    """Mean and sd of the logarithm, the distance between the bounds as unit."""
    return draw(question, "log_mean", math.log(number_units(question).unit)), draw(question, "log_sd")


def gamma(question: Question) -> tuple[Array, Array]:
    """Shape and rate, the distance between the bounds as unit; the sites are shape and mean."""
    shape = draw(question, "shape")
    return shape, shape / draw(question, "mean", unit=number_units(question).unit)


def weibull(question: Question) -> tuple[Array, Array]:
    """Scale and shape, the distance between the bounds as unit."""
    return draw(question, "scale", unit=number_units(question).unit), draw(question, "shape")


def beta(question: Question) -> tuple[Array, Array]:
    """Both shapes; the bounds are 0 and 1."""
    return draw(question, "a"), draw(question, "b")


def poisson(question: Question) -> Array:
    """The expected number."""
    return draw(question, "rate")


def geometric(question: Question) -> Array:
    """Probability of a success: the number counts the failures before the first."""
    return draw(question, "p")


def bernoulli(question: Question) -> Array:
    """Share of yes."""
    return draw(question, "p")


def multinomial(question: Question, order: Array | None = None) -> Array:
    """Shares of the choices, (choices,). order: their `breaking_order`, in which samplers move easily."""
    law_of_shares = simplex_law(priors_of(question)["p"], len(question.choices))
    if order is not None:
        law_of_shares = OrderedDirichlet(law_of_shares.concentration, order)
    return numpyro.sample("p", law_of_shares)


def marginals(question: Question) -> tuple[Array, Array]:
    """Mean and sd of every field of a record (fields,), its bounds at −1 and 1."""
    priors, fields = priors_of(question), fields_of(question)
    zero, unit = np.asarray([field_units(field) for field in fields]).T
    means, sds = ([priors[key][field.id] for field in fields] for key in ("mean", "sd"))
    mean = numpyro.sample("mean", vector_law(means, zero, unit))
    return mean, numpyro.sample("sd", vector_law(sds, 0 * unit, unit))


class Regression(NamedTuple):
    """Intercept (): the response at the middle of the features' bounds. Coefficients (d,)."""

    intercept: Array
    coefficients: Array


def regression(question: Question) -> Regression:
    """Intercept and coefficients, features and response in [−1, 1]."""
    return Regression(centre(question), coefficients(question))


def centre(question: Question) -> Array:
    """The response at the middle of the features' bounds."""
    stated = priors_of(question)["centre"]
    return numpyro.sample("intercept", law(rescaled(stated, *RecordUnits(question).response)))


def coefficients(question: Question) -> Array:
    """One for each feature, (d,)."""
    units, priors = RecordUnits(question), priors_of(question)["coefficients"]
    slopes = [priors[name] for name in units.names]
    return numpyro.sample(
        "coefficients", vector_law(slopes, 0 * units.unit, units.response.unit / units.unit)
    )


def residual_sd(question: Question) -> Array:
    """sd of a linear regression's response given the features."""
    return draw(question, "sd", unit=RecordUnits(question).response.unit)


def features(question: Question) -> tuple[Array, Array]:
    """Mean (d,) and covariance (d, d) of the features."""
    units, priors = RecordUnits(question), priors_of(question)["feature_mean"]
    means = [priors[name] for name in units.names]
    mean = numpyro.sample("feature_mean", vector_law(means, units.zero, units.unit))
    return mean, feature_covariance(question)


def feature_covariance(question: Question) -> Array:
    """Covariance (d, d) of the features: a scaled correlation matrix."""
    units, priors = RecordUnits(question), priors_of(question)
    sds = [priors["feature_sd"][name] for name in units.names]
    scale = numpyro.sample("feature_sd", vector_law(sds, 0 * units.zero, units.unit))
    if len(units.names) == 1:
        return (scale**2)[:, None]
    lkj = dist.LKJCholesky(len(units.names), priors["feature_correlation"]["concentration"])
    factor = scale[:, None] * numpyro.sample("feature_correlation", lkj)
    return factor @ factor.T
