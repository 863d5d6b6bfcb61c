"""Priors: the documented defaults, those that a study or a caller states, and their NumPyro sites."""

from __future__ import annotations

from inference.priors.defaults import priors_of
from inference.priors.sites import (
    Regression,
    bernoulli,
    beta,
    centre,
    coefficients,
    draw,
    exponential,
    feature_covariance,
    features,
    gamma,
    geometric,
    lognormal,
    multinomial,
    normal,
    poisson,
    regression,
    residual_sd,
    weibull,
)
from inference.priors.stating import with_priors

__all__ = [
    "Regression",
    "bernoulli",
    "beta",
    "centre",
    "coefficients",
    "draw",
    "exponential",
    "feature_covariance",
    "features",
    "gamma",
    "geometric",
    "lognormal",
    "multinomial",
    "normal",
    "poisson",
    "priors_of",
    "regression",
    "residual_sd",
    "weibull",
    "with_priors",
]
