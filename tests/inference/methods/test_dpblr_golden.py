"""Methods of DPBLR agree with the authors' own code, from the same noisy statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
from numpyro.diagnostics import effective_sample_size

from inference.methods import gibbs_ss_noisy, gibbs_ss_update, mcmc_ind
from inference.methods.base import Kernel, Run
from inference.methods.driver import one_chain
from inference.methods.gibbs_ss import Observed
from tests.inference.methods import dpblr_cases as golden

ERRORS = 4.0
Moments = dict[str, tuple[float, float]]


def posteriors(kernel: Kernel, data: Sequence[Any], run: Run) -> list[Moments]:
    """{parameter: mean and its Monte Carlo standard error} of each data set, all in one program."""
    with jax.enable_x64(True):
        stacked = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf, float) for leaf in leaves]), *data)
        keys = jax.random.split(jax.random.key(run.seed), (len(data), run.chains))
        chains = jax.vmap(lambda key, one: one_chain(kernel, key, one, run), in_axes=(0, None))
        sites = jax.jit(jax.vmap(chains))(keys, stacked)
        theta, variance = np.asarray(sites["theta"]), np.asarray(sites["variance"])
    drawn = {"constant": theta[..., 0], "slope": theta[..., 1], "variance": variance}
    return [{name: mean_and_error(draws[i]) for name, draws in drawn.items()} for i in range(len(data))]


def mean_and_error(draws: np.ndarray) -> tuple[float, float]:
    """Of draws (chains, kept); chains that disagree count too."""
    between = draws.mean(axis=1).std(ddof=1) / np.sqrt(len(draws))
    within = draws.std() / np.sqrt(float(effective_sample_size(draws)))
    return float(draws.mean()), float(max(between, within))


def away(found: Moments, case: dict[str, Any], method: str) -> dict[str, float]:
    """By how many combined standard errors each parameter's mean differs."""
    return {
        name: abs(found[name][0] - e.mean) / np.hypot(found[name][1], e.error)
        for name, e in golden.expected(case, method).items()
    }


def as_published(case: dict[str, Any]) -> Observed:
    """What the authors' code hands to its sampler: repaired moments of which the constant's is not 1."""
    statistics = golden.statistics(case, half=True)
    fourth = statistics.fourth_moments
    assert fourth is not None
    second, covariance = gibbs_ss_noisy.repaired(fourth[0, 0], fourth, intercept=False)
    scale = case["scale_of_half"]
    data = golden.counted_again(gibbs_ss_noisy.observed(statistics, golden.prior()), scale)
    return data._replace(
        second=second,
        covariance=covariance,
        rows=np.append(data.rows, 0.0),
        columns=np.append(data.columns, 0.0),
        released=np.append(data.released, [[case["sums_of_half"][0][0]]], axis=1),
        scale=np.append(data.scale, scale),
    )


def test_gibbs_ss_update_agrees_with_the_authors_code() -> None:
    cases = list(golden.cases("gibbs-update").values())
    assert len(cases) == 3
    data = [gibbs_ss_update.observed(golden.statistics(case), golden.prior()) for case in cases]
    ours = [golden.counted_again(one, np.inf) for one in data]
    # The authors' code takes a noisy entry and its mirror image for two releases.
    published = [golden.counted_again(one, case["scale"]) for one, case in zip(data, cases, strict=True)]
    found = posteriors(gibbs_ss_update.KERNEL, ours + published, Run(1, 2000, 5000, 6))
    for case, one in zip(cases * 2, found, strict=True):
        assert max(away(one, case, "gibbs-update").values()) < ERRORS


def test_gibbs_ss_noisy_agrees_with_the_authors_code_on_their_repaired_moments() -> None:
    cases = list(golden.cases("gibbs-noisy").values())
    assert len(cases) == 5
    data = [as_published(case) for case in cases]
    wrong = golden.cases("gibbs-noisy")["bs_N100_e1"]
    planted = as_published(wrong)
    planted = planted._replace(scale=planted.scale / 2)
    *found, faulty = posteriors(gibbs_ss_noisy.KERNEL, [*data, planted], Run(1, 2000, 5000, 6))
    for case, one in zip(cases, found, strict=True):
        assert max(away(one, case, "gibbs-noisy").values()) < ERRORS
    assert max(away(faulty, wrong, "gibbs-noisy").values()) > ERRORS


def test_mcmc_ind_agrees_with_nuts_on_all_records() -> None:
    case = golden.cases("mcmc-ind-corrected")["bs_N100_e0.1"]
    right = mcmc_ind.records(golden.statistics(case), golden.prior())
    # A rate for an inverse-gamma prior that is twice the one meant.
    planted = right._replace(prior=right.prior._replace(rate=np.float64(1.0)))
    found, faulty = posteriors(mcmc_ind.KERNEL, [right, planted], Run(1, 300, 1500, 4))
    assert max(away(found, case, "mcmc-ind-corrected").values()) < ERRORS
    assert max(away(faulty, case, "mcmc-ind-corrected").values()) > ERRORS
