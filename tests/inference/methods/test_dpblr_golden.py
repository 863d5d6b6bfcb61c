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
    data = golden.counted_twice(gibbs_ss_noisy.observed(statistics, golden.prior()))
    return data._replace(
        second=second,
        covariance=covariance,
        rows=np.append(data.rows, 0.0),
        columns=np.append(data.columns, 0.0),
        released=np.append(data.released, [[case["sums_of_half"][0][0]]], axis=1),
        scale=np.append(data.scale, case["scale_of_half"]),
    )


@pytest.fixture(scope="module")
def updated() -> tuple[list[dict[str, Any]], list[Moments], list[Moments]]:
    """The cases of Gibbs-SS-Update, ours, and with Σx counted twice."""
    cases = list(golden.cases("gibbs-update").values())
    ours = [gibbs_ss_update.observed(golden.statistics(case), golden.prior()) for case in cases]
    run = Run(1, 2000, 6000, 6)
    twice = posteriors(gibbs_ss_update.KERNEL, [golden.counted_twice(data) for data in ours], run)
    return cases, posteriors(gibbs_ss_update.KERNEL, ours, run), twice


def test_gibbs_ss_update_agrees_with_the_authors_code(updated: Any) -> None:
    cases, ours, twice = updated
    assert len(cases) == 3
    for case, found, published in zip(cases, ours, twice, strict=True):
        assert max(away(published, case, "gibbs-update").values()) < ERRORS
        assert max(away(found, case, "gibbs-update").values()) < ERRORS


def test_gibbs_ss_noisy_agrees_with_the_authors_code_on_their_repaired_moments() -> None:
    cases = list(golden.cases("gibbs-noisy").values())
    assert len(cases) == 5
    found = posteriors(gibbs_ss_noisy.KERNEL, [as_published(case) for case in cases], Run(1, 2000, 5000, 6))
    for case, one in zip(cases, found, strict=True):
        assert max(away(one, case, "gibbs-noisy").values()) < ERRORS


def test_mcmc_ind_agrees_with_nuts_on_all_records() -> None:
    case = golden.cases("mcmc-ind-corrected")["bs_N100_e0.1"]
    data = mcmc_ind.records(golden.statistics(case), golden.prior())
    (found,) = posteriors(mcmc_ind.KERNEL, [data], Run(1, 300, 1500, 4))
    assert max(away(found, case, "mcmc-ind-corrected").values()) < ERRORS


def test_the_comparison_finds_noise_that_is_half_of_what_it_was() -> None:
    cases = list(golden.cases("gibbs-noisy").values())
    planted = [as_published(case) for case in cases]
    planted = [data._replace(scale=data.scale / 2) for data in planted]
    found = posteriors(gibbs_ss_noisy.KERNEL, planted, Run(1, 2000, 5000, 6))
    assert max(max(away(one, c, "gibbs-noisy").values()) for one, c in zip(found, cases, strict=True)) > ERRORS
