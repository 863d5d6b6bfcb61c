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


@pytest.fixture(scope="module")
def found() -> list[Moments]:
    """One program for the golden case and for two holders."""
    right = with_an_empty_holder(mcmc_ind.records(golden.statistics(CASE), golden.prior()))
    both = mcmc_ind.records(two_holders(), golden.prior())
    return posteriors(mcmc_ind.KERNEL, [right, both], Run(1, 300, 800, 4))


@pytest.mark.slow
def test_mcmc_ind_agrees_with_nuts_on_all_records(found: list[Moments]) -> None:
    assert max(away(found[0], CASE, "mcmc-ind-corrected").values()) < ERRORS
