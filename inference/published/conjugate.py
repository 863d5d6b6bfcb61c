"""The priors of the published methods: normal θ, inverse-gamma σ², normal-inverse-Wishart features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jax import Array
from numpy.typing import NDArray

Values = NDArray[np.float64] | Array


class ConjugatePrior(NamedTuple):
    """In the statistics' scaled units; q columns with the constant first where there is one, d features.

    θ ~ N(theta_mean (q,), theta_covariance (q, q)); methods with a normal-inverse-gamma prior take σ² times
    that covariance, and say so. σ² ~ inverse gamma(shape, rate). The features' covariance Σ ~ inverse
    Wishart(scatter (d, d), freedom), and, where their mean is not zero by assumption, mean ~ N(feature_mean
    (d,), Σ / feature_mean_records).
    """

    theta_mean: Values
    theta_covariance: Values
    shape: float | Array
    rate: float | Array
    scatter: Values
    freedom: float | Array
    feature_mean: Values
    feature_mean_records: float | Array


def default_prior(columns: int, features: int) -> ConjugatePrior:
    """Weak, for features and response in [−1, 1]: slopes of about 1, residual sd of about a half or less."""
    return ConjugatePrior(
        theta_mean=np.zeros(columns),
        theta_covariance=np.eye(columns),
        shape=2.0,
        rate=0.25,
        scatter=np.eye(features) / 4,
        freedom=features + 2.0,
        feature_mean=np.zeros(features),
        feature_mean_records=1.0,
    )
