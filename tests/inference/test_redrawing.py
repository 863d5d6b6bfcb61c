"""Shares that may be zero or not: chains visit both, and the jumps keep the posterior.

Under Dirichlet(0.02) NUTS alone takes a share from nothing to something once in a hundred transitions. Exact
posterior draws (tests/inference/sparse_shares.py) say how often each is something.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from inference.models import model_for
from inference.priors.shares import coordinates_of
from inference.results.convergence import mixing
from inference.sampling import sample
from inference.sampling.space import as_arrays, space_of
from ldp_client import mechanism_for
from summaries import QuestionSummary
from tests.inference.sparse_shares import exact_log_shares, question_of
from tests.statistics import FALSE_ALARM

SPARSE = 0.02
COUNTS = np.asarray([8, 11, 6, 39, 11, 9, 9, 7])
SOME = 0.01
DRAWS = 4000


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def sparse_model(counts=COUNTS):
    question = question_of(len(counts), str(SPARSE))
    mechanism = mechanism_for(question)
    model = model_for(question, QuestionSummary(int(counts.sum()), counts))
    return model, float(mechanism.p), (1 - float(mechanism.p)) / (len(counts) - 1)


def exact_shares(draws=DRAWS, counts=COUNTS):
    _, p, q = sparse_model(counts)
    return exact_log_shares(counts, p, q, SPARSE, draws, np.random.default_rng(1))


def test_exact_draws_match_weighted_prior_draws():
    counts, p, q = np.asarray([14, 7, 9]), 0.6, 0.2
    prior = np.random.default_rng(2).dirichlet(np.full(3, 0.5), 200_000)
    weight = np.exp(np.log(q + (p - q) * prior) @ counts)
    exact = np.exp(exact_log_shares(counts, p, q, 0.5, 20_000, np.random.default_rng(3)))
    assert exact.mean(axis=0) == pytest.approx(weight @ prior / weight.sum(), abs=0.01)
    assert exact.std(axis=0) == pytest.approx(
        np.sqrt(weight @ prior**2 / weight.sum() - (weight @ prior / weight.sum()) ** 2), abs=0.01
    )


def jumped(log_shares):
    """In how many exact draws each share (k,) becomes something by a round of jumps; and nothing."""
    model, _, _ = sparse_model()
    space, data = space_of(model), as_arrays(model.data)
    order = np.asarray(model.data["order"])
    vectors = jax.vmap(coordinates_of)(jnp.asarray(log_shares[:, order[0]]))
    keys = jax.random.split(jax.random.key(5), len(vectors))
    sites = jax.jit(jax.vmap(space.sites, in_axes=(0, None)))
    moved = jax.jit(jax.vmap(space.redraw, in_axes=(0, 0, None)))(vectors, keys, data)
    before, after = (np.asarray(sites(each, data)["p"]) > SOME for each in (vectors, moved))
    return np.sum(after & ~before, axis=0), np.sum(before & ~after, axis=0)


def balanced(rises, falls):
    """Whether rises and falls are alike, as they are where a move keeps the law that the draws are from."""
    pairs = zip(rises.tolist(), falls.tolist(), strict=True)
    return all(up + down == 0 or stats.binomtest(up, up + down).pvalue > FALSE_ALARM for up, down in pairs)


@pytest.mark.slow
def test_jumps_keep_the_posterior():
    rises, falls = jumped(exact_shares())
    assert (rises + falls).sum() > 1000
    assert balanced(rises, falls)


@pytest.mark.slow
def test_chains_visit_every_possibly_nonzero_share():
    model, _, _ = sparse_model()
    found = model.parameters(sample(model, seed=1).sites)
    some = {name: (draws > SOME).astype(float) for name, draws in found.items()}
    assert min(mixing(found).ess_bulk.values()) > 400
    expected = np.mean(np.exp(exact_shares(20_000)) > SOME, axis=0)
    for draws, chance in zip(some.values(), expected, strict=True):
        ess = 100.0 if draws.std() == 0 else mixing({"x": draws}).ess_bulk["x"]
        assert draws.mean() == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / ess) + 1e-3)
