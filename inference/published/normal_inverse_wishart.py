"""Draws of the features' mean and covariance given their sums, under the normal-inverse-Wishart prior."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from inference.published.conjugate import ConjugatePrior, Values
from inference.published.wishart_draws import inverse_wishart


def draw_features(key: Array, gram: Array, count: Values, prior: ConjugatePrior) -> tuple[Array, Array]:
    """Mean (d,) and covariance (d, d): gram (q, q) is Σ wwᵀ of `count` records, semidefinite.

    w = (1, x); or w = x where q = d: then the mean is zero by assumption.
    """
    features = prior.scatter.shape[0]
    freedom = jnp.asarray(prior.freedom + count)
    if gram.shape[0] == features:
        return jnp.zeros(features), inverse_wishart(key, jnp.asarray(prior.scatter + gram), freedom)
    # The gram's own constant entry, not the count: what is left of a semidefinite matrix stays semidefinite.
    mean = gram[0, 1:] / gram[0, 0]
    centred = gram[1:, 1:] - jnp.outer(mean, mean) * gram[0, 0]
    records = prior.feature_mean_records + count
    away = mean - prior.feature_mean
    scatter = prior.scatter + centred + prior.feature_mean_records * count / records * jnp.outer(away, away)
    middle = (prior.feature_mean_records * prior.feature_mean + count * mean) / records
    wishart, normal = jax.random.split(key)
    covariance = inverse_wishart(wishart, jnp.asarray(scatter), freedom)
    standard = jax.random.normal(normal, (features,))
    return middle + jnp.linalg.cholesky(covariance) @ standard / jnp.sqrt(records), covariance
