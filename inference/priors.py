"""Default priors (after LDPBI section 8), shared by private and non-private fits.

All are in scaled units: a number's bounds are 0 and 1; a record's features and response have bounds
−1 and 1. Each function draws the sites of one model and returns them.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array


def normal() -> tuple[Array, Array]:
    """Mean ~ Normal(½, 1), sd ~ Gamma(2, 4): the mean near the bounds, the sd about half their distance."""
    return numpyro.sample("mean", dist.Normal(0.5, 1.0)), numpyro.sample("sd", dist.Gamma(2.0, 4.0))


def exponential() -> Array:
    """Rate ~ Gamma(2, ½), for the distance between the bounds as unit."""
    return numpyro.sample("rate", dist.Gamma(2.0, 0.5))


def bernoulli() -> Array:
    """p ~ Beta(1, 1)."""
    return numpyro.sample("p", dist.Beta(1.0, 1.0))


def multinomial(choices: int) -> Array:
    """p ~ Dirichlet(1, …, 1), shape (choices,)."""
    return numpyro.sample("p", dist.Dirichlet(jnp.ones(choices)))


class Regression(NamedTuple):
    """Intercept (), coefficients (d,)."""

    intercept: Array
    coefficients: Array


def regression(features: int) -> Regression:
    """Intercept and coefficients ~ Normal(0, 1)."""
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 1.0))
    coefficients = numpyro.sample("coefficients", dist.Normal(0.0, 1.0).expand([features]).to_event(1))
    return Regression(intercept, coefficients)


def residual_sd() -> Array:
    """sd of a linear regression's response given the features ~ Gamma(2, 4)."""
    return numpyro.sample("sd", dist.Gamma(2.0, 4.0))


def features(count: int) -> tuple[Array, Array]:
    """Mean (d,) and covariance (d, d) of the features: means ~ Normal(0, ½), sds ~ Gamma(2, 4), LKJ(2)."""
    mean = numpyro.sample("feature_mean", dist.Normal(0.0, 0.5).expand([count]).to_event(1))
    scale = numpyro.sample("feature_sd", dist.Gamma(2.0, 4.0).expand([count]).to_event(1))
    if count == 1:
        return mean, (scale**2)[:, None]
    correlation = numpyro.sample("feature_correlation", dist.LKJCholesky(count, 2.0))
    factor = scale[:, None] * correlation
    return mean, factor @ factor.T
