"""Statistics of chains are ArviZ's; some draws have none."""

import numpy as np
import pytest

from inference.results.convergence import ess_bulk, ess_tail, r_hat

DRAWS = np.random.default_rng(0).normal(size=(4, 300))


@pytest.mark.parametrize(
    "draws",
    [np.ones((4, 300)), np.where(np.arange(300) == 7, 2.0, np.ones((4, 300))), DRAWS[:, :3], DRAWS * np.nan],
    ids=["fixed", "fixed but for a few", "too few", "no numbers"],
)
def test_draws_that_do_not_mix_have_no_statistics(draws):
    assert np.isnan([r_hat(draws), ess_bulk(draws), ess_tail(draws)]).all()


def test_one_chain_has_no_r_hat():
    assert np.isnan(r_hat(DRAWS[:1]))
    assert ess_bulk(DRAWS[:1]) > 200


def test_chains_apart_are_told_from_mixed_ones():
    apart = DRAWS + np.arange(4)[:, None]
    assert r_hat(DRAWS) < 1.01 < 1.3 < r_hat(apart)
    assert ess_bulk(apart) < 20 < 900 < ess_bulk(DRAWS)
    assert ess_tail(apart) < 100 < 900 < ess_tail(DRAWS)
