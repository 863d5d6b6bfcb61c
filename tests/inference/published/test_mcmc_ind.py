"""MCMC-Ind agrees with the authors' own posterior of all records."""

from __future__ import annotations

import pytest

from inference.published import mcmc_ind
from inference.published.base import Run
from tests.inference.published import dpblr_cases as golden
from tests.inference.published.agreement import ERRORS, away, mean_and_error


@pytest.mark.slow
def test_mcmc_ind_agrees_with_nuts_on_all_records() -> None:
    case = golden.cases("mcmc-ind-corrected")["bs_N100_e0.1"]
    sites = mcmc_ind.METHOD.draw(golden.statistics(case), golden.prior(), Run(1)).sites
    drawn = {
        "constant": sites["theta"][..., 0],
        "slope": sites["theta"][..., 1],
        "variance": sites["variance"],
    }
    found = {name: mean_and_error(draws) for name, draws in drawn.items()}
    assert max(away(found, case, "mcmc-ind-corrected").values()) < ERRORS
