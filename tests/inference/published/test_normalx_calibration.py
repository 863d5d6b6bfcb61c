"""MCMC-normalX with an intercept (DDPLR B.2, with what the paper leaves out) against its own model.

Parameters from the prior, tables and noise given them, draws given what was released: the rank of a parameter
among its draws is uniform if and only if the kernel's law is the posterior.
"""

import jax
import numpy as np
import pytest
from scipy import stats

from inference.published.base import Run, one_chain
from inference.published.conjugate import ConjugatePrior
from inference.published.given_grams import Released
from inference.published.mcmc_normalx import KERNEL
from tests.statistics import follows

STUDIES, ROWS, NOISE = 80, np.array([14.0, 10.0]), 2.0
PRIOR = ConjugatePrior(
    *(np.array([0.2, 0, -0.3]), np.diag([0.5, 1, 1]), 4.0, 1.0),
    *(np.eye(2) * 2, 6.0, np.array([0.3, -0.2]), 3.0),
)
RUN = Run(seed=0, warmup=300, kept=99, chains=1, thin=10)


def simulate(random):
    """Noisy sums (J, 4, 4) of two small tables, and the parameters that they came from (7,)."""
    covariance = stats.invwishart(PRIOR.freedom, PRIOR.scatter).rvs(random_state=random)
    mean = random.multivariate_normal(PRIOR.feature_mean, covariance / PRIOR.feature_mean_records)
    theta = random.multivariate_normal(PRIOR.theta_mean, PRIOR.theta_covariance)
    variance = PRIOR.rate / random.gamma(PRIOR.shape)
    sums = []
    for rows in ROWS.astype(int):
        x = np.column_stack([np.ones(rows), random.multivariate_normal(mean, covariance, rows)])
        records = np.column_stack([x, x @ theta + np.sqrt(variance) * random.normal(size=rows)])
        noise = np.triu(random.normal(size=(4, 4))) * NOISE
        noise += np.triu(noise, 1).T
        noise[0, 0] = 0
        sums.append(records.T @ records + noise)
    return np.array(sums), np.concatenate([theta, [variance, mean[0], covariance[0, 0], covariance[0, 1]]])


@pytest.fixture(scope="module")
def studies():
    random = np.random.default_rng(1)
    sums, truths = zip(*(simulate(random) for _ in range(STUDIES)), strict=True)
    return np.array(sums), np.array(truths)


@pytest.fixture(scope="module")
def posteriors_given():
    """Draws (studies, 99, 7) given sums and the noise's variance: one program for right and wrong ones."""
    each = Released(0, None, None, None, None, ConjugatePrior(*[None] * 8))
    chains = jax.vmap(lambda key, data: one_chain(KERNEL, key, data, RUN), (0, each))
    program = jax.jit(chains)

    def run(sums, variance):
        with jax.enable_x64(True):
            data = Released(sums, variance, ROWS, ROWS, np.float64(RUN.warmup), PRIOR)
            found = program(jax.random.split(jax.random.key(0), len(sums)), data)
        mean, covariance = found["feature_mean"], found["feature_covariance"]
        parts = [found["theta"], found["variance"][..., None], mean[..., :1], covariance[..., 0, :]]
        return np.concatenate(parts, -1)

    return run


def uniform(draws, truths):
    """For each parameter whether the truths' ranks among their draws are uniform."""
    ranks = (draws < truths[:, None]).sum(1)
    counts = [np.histogram(rank, 5, (0, RUN.kept + 1))[0] for rank in ranks.T]
    return [follows(count, np.full(5, 0.2)) for count in counts]


@pytest.mark.slow
def test_ranks_are_uniform(studies, posteriors_given):
    sums, truths = studies
    variance = np.full((4, 4), NOISE**2)
    variance[0, 0] = 0
    assert all(uniform(posteriors_given(sums, variance), truths))
    # A planted fault: the noise is taken to be a quarter as wide as it is.
    assert not all(uniform(posteriors_given(sums, variance / 16), truths))


@pytest.mark.slow
def test_hard_statistics_give_finite_draws(studies, posteriors_given):
    sums, variance = studies[0].copy(), np.full((4, 4), NOISE**2)
    variance[0, 0] = 0
    sums[:30, :, 1, 1] = -50.0  # indefinite
    sums[30:60, :, 1], sums[30:60, :, :, 1] = sums[30:60, :, 2], sums[30:60, :, :, 2]  # collinear
    sums[60:, :, 1:, 1:] *= 1000.0  # far beyond what the noise explains
    assert np.isfinite(posteriors_given(sums, variance)).all()
