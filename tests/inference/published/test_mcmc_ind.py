"""MCMC-Ind against NUTS on all records, and against importance sampling from the prior."""

from __future__ import annotations

import numpy as np
import pytest

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published import mcmc_ind
from inference.published.base import Run
from inference.published.mcmc_ind import Records
from tests.inference.published import dpblr_cases as golden
from tests.inference.published.agreement import ERRORS, Moments, away, posteriors

CASE = golden.cases("mcmc-ind-corrected")["bs_N100_e0.1"]
SOME, MORE = 30, 70


def with_an_empty_holder(data: Records) -> Records:
    return data._replace(
        released=np.concatenate([data.released, np.zeros((1, 3, 3))]),
        counts=np.concatenate([data.counts, [0.0]]),
    )


def two_holders() -> HolderStatistics:
    """Gaussian noise, and y² not released."""
    sums = np.array([[[SOME, 4.0, 30.0], [4.0, 9.0, 8.0], [30.0, 8.0, 0.0]]] * 2)
    sums[1] = [[MORE, -3.0, 60.0], [-3.0, 6.0, 2.0], [60.0, 2.0, 0.0]]
    noise = np.array([[0.0, 9.0, 25.0], [9.0, 4.0, 9.0], [25.0, 9.0, np.inf]])
    return HolderStatistics(sums, noise, np.array([SOME, MORE], float), intercept=True)


def standard_sums(records: int, draws: int, random: np.random.Generator) -> np.ndarray:
    """(draws, 3, 3) of Σ eeᵀ, e = (1, N(0, 1), N(0, 1)), by Bartlett's decomposition."""
    middle = random.normal(size=(draws, 2)) * np.sqrt(records)
    lower = np.zeros((draws, 2, 2))
    lower[:, 0, 0] = np.sqrt(random.chisquare(records - 1, draws))
    lower[:, 1, 1] = np.sqrt(random.chisquare(records - 2, draws))
    lower[:, 1, 0] = random.normal(size=draws)
    found = np.empty((draws, 3, 3))
    found[:, 0, 0], found[:, 0, 1:], found[:, 1:, 0] = records, middle, middle
    found[:, 1:, 1:] = lower @ lower.swapaxes(1, 2) + middle[:, :, None] * middle[:, None] / records
    return found


def weighted_moments(statistics: HolderStatistics, draws: int = 400_000) -> Moments:
    """The exact posterior's means and their errors: draws of the prior, weighted with what was released."""
    random, prior = np.random.default_rng(1), golden.prior()
    variance = prior.rate / random.gamma(prior.shape, size=draws)
    theta = random.normal(size=(draws, 2)) * np.sqrt(variance[:, None] * np.diag(prior.theta_covariance))
    spread = prior.scatter[0, 0] / random.chisquare(prior.freedom, draws)
    mean = random.normal(size=draws) * np.sqrt(spread)
    change = np.zeros((draws, 3, 3))
    change[:, 0, 0], change[:, 1, 0], change[:, 1, 1] = 1.0, mean, np.sqrt(spread)
    change[:, 2] = np.einsum("na,nab->nb", theta, change[:, :2])
    change[:, 2, 2] = np.sqrt(variance)
    weight = np.where(np.triu(statistics.noise) > 0, 1 / np.maximum(statistics.noise, 1e-9), 0.0)
    log_weights = np.zeros(draws)
    for released, count in zip(statistics.sums, statistics.counts, strict=True):
        sums = change @ standard_sums(int(count), draws, random) @ change.swapaxes(1, 2)
        log_weights -= np.sum(((sums - released) * weight) ** 2, axis=(1, 2)) / 2
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    return {
        name: _mean(value, weights)
        for name, value in zip(golden.PARAMETERS, [*theta.T, variance], strict=True)
    }


def _mean(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    mean = float(weights @ values)
    return mean, float(np.sqrt(weights**2 @ (values - mean) ** 2))


@pytest.fixture(scope="module")
def found() -> list[Moments]:
    """One program for: the golden case, it with a wrong prior, and two holders."""
    right = with_an_empty_holder(mcmc_ind.records(golden.statistics(CASE), golden.prior()))
    planted = right._replace(prior=right.prior._replace(rate=np.float64(1.0)))
    both = mcmc_ind.records(two_holders(), golden.prior())
    return posteriors(mcmc_ind.KERNEL, [right, planted, both], Run(1, 300, 800, 4))


@pytest.mark.slow
def test_mcmc_ind_agrees_with_nuts_on_all_records(found: list[Moments]) -> None:
    assert max(away(found[0], CASE, "mcmc-ind-corrected").values()) < ERRORS


@pytest.mark.slow
def test_wrong_prior_changes_the_posterior(found: list[Moments]) -> None:
    assert max(away(found[1], CASE, "mcmc-ind-corrected").values()) > ERRORS


@pytest.mark.slow
def test_two_holders_agree_with_importance_sampling(found: list[Moments]) -> None:
    exact = weighted_moments(two_holders())
    for name, (mean, error) in exact.items():
        assert abs(found[2][name][0] - mean) < ERRORS * np.hypot(found[2][name][1], error), name


def test_importance_sampling_tells_holders_apart() -> None:
    one = two_holders()
    summed = HolderStatistics(
        one.sums[:1] + one.sums[1:], one.noise, np.array([float(SOME + MORE)]), intercept=True
    )
    apart, together = weighted_moments(one), weighted_moments(summed)
    gaps = [abs(apart[k][0] - together[k][0]) / np.hypot(apart[k][1], together[k][1]) for k in apart]
    assert max(gaps) > ERRORS
