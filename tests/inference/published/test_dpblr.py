"""DPBLR's methods agree with the authors' own code, and the steps of their samplers with exact sums.

tests/golden/methods/dpblr.json has fixed noisy statistics, and what the code of their authors makes of them.
"""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.diagnostics import effective_sample_size

from inference.likelihoods.holders import HolderStatistics
from inference.published import gibbs_ss, mcmc_ind
from inference.published.base import Run, one_chain
from inference.published.conjugate import ConjugatePrior

FILE = json.loads((Path(__file__).parents[2] / "golden" / "methods" / "dpblr.json").read_text())


def cases_with(method):
    return {name: case for name, case in FILE["cases"].items() if method in case["posterior"]}


def prior():
    """Of the authors' experiments, one feature."""
    stated = FILE["prior"]
    return ConjugatePrior(
        np.zeros(2),
        np.eye(2) / stated["theta_precision"],
        np.float64(stated["shape"]),
        np.float64(stated["rate"]),
        np.array([[float(stated["scatter"])]]),
        np.float64(stated["freedom"]),
        np.zeros(1),
        np.float64(stated["mean_records"]),
    )


def statistics_of(case, half=False):
    """As released; half: what was released beside the fourth moments, which got the other half of ε."""
    suffix = "_of_half" if half else ""
    sums = np.array(case["sums" + suffix])[None]
    noise = np.full((3, 3), case["scale" + suffix])
    records = float(case["records"])
    sums[0, 0, 0], noise[0, 0] = records, 0.0
    powers = np.add.outer(np.add.outer([0, 1], [0, 1]), np.add.outer([0, 1], [0, 1]))
    fourth = np.array(case["moments"])[powers] if half else None
    return HolderStatistics(
        sums, noise, np.array([records]), "laplace", intercept=True, fourth_moments=fourth
    )


def counted_again(data, scale):
    """The noisy Σx as two releases, each with its noise; with `scale` = inf the second says nothing."""
    return data._replace(
        rows=np.append(data.rows, 0.0),
        columns=np.append(data.columns, 1.0),
        released=np.concatenate([data.released, data.released[:, :1]], axis=1),
        scale=np.append(data.scale, scale),
    )


def posteriors(kernel, data, run):
    """{parameter: mean and its Monte Carlo standard error} of each data set, all in one program."""
    with jax.enable_x64(True):
        stacked = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf, float) for leaf in leaves]), *data)
        keys = jax.random.split(jax.random.key(run.seed), (len(data), run.chains))
        chains = jax.vmap(lambda key, one: one_chain(kernel, key, one, run), in_axes=(0, None))
        sites = jax.jit(jax.vmap(chains))(keys, stacked)
        theta, variance = np.asarray(sites["theta"]), np.asarray(sites["variance"])
    drawn = {"constant": theta[..., 0], "slope": theta[..., 1], "variance": variance}
    return [{name: mean_and_error(draws[i]) for name, draws in drawn.items()} for i in range(len(data))]


def mean_and_error(draws):
    """Of draws (chains, kept); chains that disagree count too."""
    between = draws.mean(axis=1).std(ddof=1) / np.sqrt(len(draws))
    within = draws.std() / np.sqrt(float(effective_sample_size(draws)))
    return float(draws.mean()), float(max(between, within))


def assert_near(found, case, method):
    for name in ("constant", "slope", "variance"):
        (mean, error), (expected, _, its_error) = found[name], case["posterior"][method][name]
        assert abs(mean - expected) < 4 * np.hypot(error, its_error), name


def as_published(case):
    """What the authors' code hands to its sampler: repaired moments of which the constant's is not 1."""
    statistics = statistics_of(case, half=True)
    fourth = statistics.fourth_moments
    second, covariance = gibbs_ss.repaired(fourth[0, 0], fourth, intercept=False)
    scale = case["scale_of_half"]
    data = counted_again(gibbs_ss.observed(statistics, prior()), scale)
    return data._replace(
        second=second,
        covariance=covariance,
        rows=np.append(data.rows, 0.0),
        columns=np.append(data.columns, 0.0),
        released=np.append(data.released, [[case["sums_of_half"][0][0]]], axis=1),
        scale=np.append(data.scale, scale),
    )


@pytest.mark.slow
def test_gibbs_ss_update_agrees_with_the_authors_code():
    cases = list(cases_with("gibbs-update").values())
    assert len(cases) == 3
    data = [gibbs_ss.observed(statistics_of(case), prior()) for case in cases]
    ours = [counted_again(one, np.inf) for one in data]
    # The authors' code takes a noisy entry and its mirror image for two releases.
    published = [counted_again(one, case["scale"]) for one, case in zip(data, cases, strict=True)]
    found = posteriors(gibbs_ss.DRAWN_MOMENTS, ours + published, Run(1, 1000, 2000, 4))
    for case, one in zip(cases * 2, found, strict=True):
        assert_near(one, case, "gibbs-update")


@pytest.mark.slow
def test_gibbs_ss_noisy_matches_authors_on_repaired_moments():
    cases = list(cases_with("gibbs-noisy").values())
    assert len(cases) == 5
    data = [as_published(case) for case in cases]
    found = posteriors(gibbs_ss.GIVEN_MOMENTS, data, Run(1, 1000, 2000, 4))
    for case, one in zip(cases, found, strict=True):
        assert_near(one, case, "gibbs-noisy")


@pytest.mark.slow
def test_mcmc_ind_agrees_with_nuts_on_all_records():
    case = cases_with("mcmc-ind-corrected")["bs_N100_e0.1"]
    sites = mcmc_ind.METHOD.draw(statistics_of(case), prior(), Run(1)).sites
    drawn = {"constant": sites["theta"][..., 0], "slope": sites["theta"][..., 1], **sites}
    found = {name: mean_and_error(draws) for name, draws in drawn.items() if name != "theta"}
    assert_near(found, case, "mcmc-ind-corrected")


def near(found, mean):
    """Whether draws (n, …) could have this mean, entry by entry."""
    errors = found.std(axis=0) / np.sqrt(len(found))
    return bool(np.all(np.abs(found.mean(axis=0) - mean) < 5 * errors + 1e-12))


@pytest.mark.slow
def test_latent_sums_have_their_conditional_mean_and_covariance():
    """Two holders of 50 and 400 records; Σy was not released."""
    sums = np.array([[[50.0, 3.0, 0.0], [3.0, 60.0, 20.0], [0.0, 20.0, 90.0]]] * 2)
    sums[1] = 7 * sums[1] + 50 * np.eye(3)
    scales = np.array([[0.0, 4.0, np.inf], [4.0, 9.0, 5.0], [np.inf, 5.0, 6.0]])
    statistics = HolderStatistics(sums, scales, np.array([50.0, 400.0]), intercept=True)
    theta, variance = np.array([0.2, 0.3]), 0.9
    with jax.enable_x64(True):
        second, four = gibbs_ss.normal_moments(np.array([0.1]), np.array([[1.2]]), 2)
        data = gibbs_ss.observed(statistics, prior())
        noise = jnp.broadcast_to(data.scale**2, data.released.shape)
        state = gibbs_ss.State(jnp.array(theta), jnp.array(variance), second, four, noise)
        keys = jax.random.split(jax.random.key(1), 20_000)
        drawn = np.asarray(jax.jit(jax.vmap(lambda key: gibbs_ss.draw_sums(key, state, data)))(keys))
        mean, covariance = map(np.asarray, gibbs_ss.record_moments(second, four, *state[:2]))
    rows, columns = np.triu_indices(3)
    rows, columns = rows[1:], columns[1:]
    prior_mean, prior_covariance = mean[rows, columns], covariance[rows, columns][:, rows, columns]
    noise = statistics.noise[rows, columns]
    seen = np.isfinite(noise)
    for j, count in enumerate(statistics.counts):
        joint = count * prior_covariance
        spread = joint[np.ix_(seen, seen)] + np.diag(noise[seen] ** 2)
        gain = joint[:, seen] @ np.linalg.inv(spread)
        released = statistics.sums[j, rows, columns]
        exact = count * prior_mean + gain @ (released - count * prior_mean)[seen]
        left = joint - gain @ joint[seen]
        assert near(drawn[:, j], exact)
        apart = drawn[:, j] - exact
        assert near(np.einsum("ni,nj->nij", apart, apart), left)
        assert not near(drawn[:, j], count * prior_mean)
