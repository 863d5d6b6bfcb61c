"""The likelihood of `marginal` under the conjugate priors of the published methods.

`ldpkit fit` uses the study's own priors on the same likelihood (inference.models.holder_regression).
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.scipy.linalg import solve_triangular

from inference.likelihoods.holders import HolderStatistics
from inference.likelihoods.regression.moments import linear_moments
from inference.models.base import Model, Sampling
from inference.models.record_sums import observed
from inference.published.conjugate import ConjugatePrior


def conjugate_model(statistics: HolderStatistics, prior: ConjugatePrior, in_sds: bool = False) -> Model:
    """The likelihood under a ConjugatePrior, all in scaled units.

    in_sds: θ's covariance is σ² times the prior's, as DPBLR has it; else θ and σ² are independent.
    """
    found = observed(statistics)
    constant, average, d = statistics.intercept, statistics.average, statistics.features

    def program(statistics: Array, **data: Array) -> None:
        own = ConjugatePrior(*(data[f"prior_{name}"] for name in ConjugatePrior._fields))
        variance = numpyro.sample("variance", dist.InverseGamma(own.shape, own.rate))
        spread = own.theta_covariance * variance if in_sds else own.theta_covariance
        theta = numpyro.sample("theta", dist.MultivariateNormal(own.theta_mean, spread))
        factor = _feature_factor(own, d)
        mean = _feature_mean(own, factor) if constant else 0.0
        moments = linear_moments(
            theta[int(constant) :],
            theta[0] if constant else 0.0,
            jnp.sqrt(variance),
            mean,
            factor @ factor.T,
            constant=constant,
            average=average,
        )
        numpyro.sample("reports", found.law(moments, data), obs=statistics)

    initial = {
        "theta": np.zeros(d + constant),
        "variance": 0.25,
        "precision_factor": 2 * np.eye(d),
        **({"feature_mean": np.zeros(d)} if constant else {}),
        **found.initial,
    }
    data = {**found.data, **{f"prior_{name}": value for name, value in prior._asdict().items()}}
    return Model(program, data, initial, dict, sampling=Sampling(found.target_acceptance))


def _feature_factor(prior: ConjugatePrior, d: int) -> Array:
    """A square root of Σ ~ inverse Wishart: its inverse is Wishart, drawn as a Cholesky factor."""
    inverse = jnp.linalg.inv(jnp.asarray(prior.scatter))
    law = dist.WishartCholesky(prior.freedom, scale_tril=jnp.linalg.cholesky(inverse))
    factor = numpyro.sample("precision_factor", law)
    return solve_triangular(factor, jnp.eye(d), lower=True).T


def _feature_mean(prior: ConjugatePrior, factor: Array) -> Array:
    covariance = factor @ factor.T / prior.feature_mean_records
    return numpyro.sample("feature_mean", dist.MultivariateNormal(prior.feature_mean, covariance))
