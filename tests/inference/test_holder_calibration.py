"""Ranks of truths drawn from the prior are uniform, and not if noise is left out."""

from __future__ import annotations

import copy
from dataclasses import replace

import jax
import numpy as np
import pytest

from inference.design.simulated_posteriors import posterior_draws
from inference.likelihoods.holders.statistics import HolderStatistics, exact
from inference.models.holder_regression import holder_regression
from inference.sampling import sample, sample_prior
from ldp_client import mechanism_for
from schemas import Study
from tests import studies
from tests.statistics import follows

pytestmark = pytest.mark.long_runs

# Ranks of truths among draws that are far enough apart to be independent.
STUDIES, FAULTY, RECORDS, RANKS, THIN = 60, 30, 300, 6, 15
TABLE = {
    "id": "wage",
    "ask": "table",
    "features": studies.FEATURES[:1],
    "norm": "1",
    "response": {"id": "rate", "bounds": ["1", "5"]},
    "mechanism": {"name": "table_statistics", "epsilon": "2", "delta": "1e-6", "count_share": "0.2"},
    # With the defaults many draws would leave the bounds: this prior is for records well inside.
    "model": {
        "name": "linear_regression",
        "prior": {"sd": {"distribution": "gamma", "shape": "4", "rate": "10"}},
    },
}


# Without a noised count.
LAPLACE = {**TABLE, "mechanism": {"name": "table_statistics_laplace", "epsilon": "2"}}


def question_of(table, **mechanism):
    document = copy.deepcopy(table)
    document["mechanism"] |= mechanism
    return Study(studies.document(document, respondent="holder")).questions[0]


def shape_of_release(question, holders):
    """Statistics without holders' numbers: noise as the mechanism states it."""
    mechanism = mechanism_for(question)
    constant = int(mechanism.intercept)
    size = len(mechanism.features) + 1 + constant
    noise = np.full((size, size), np.inf)
    for (i, j), scale in zip(mechanism.coordinates, mechanism.noise_scale, strict=True):
        row, column = i - 1 + constant, j - 1 + constant
        noise[row, column] = noise[column, row] = scale
    if constant:
        noise[0, 0] = mechanism.count_noise_sd
    return HolderStatistics(
        np.zeros((holders, size, size)),
        noise,
        np.full(holders, float(RECORDS)),
        law=mechanism.law,
        intercept=mechanism.intercept,
        count_sd=mechanism.count_noise_sd,
    )


def released(truth, release, random):
    """What holders with records from the model would release: exact records, noise of the stated size."""
    d = len(truth["coefficients"])
    factor = truth["feature_sd"][:, None] * truth.get("feature_correlation", np.eye(d))
    tables = []
    for n in random.integers(RECORDS // 2, 2 * RECORDS, release.holders):
        x = truth.get("feature_mean", 0.0) + random.normal(size=(n, d)) @ factor.T
        y = truth.get("intercept", 0.0) + x @ truth["coefficients"] + truth["sd"] * random.normal(size=n)
        tables.append((x, y))
    found = exact(tables, release.intercept)
    white = random.laplace if release.law == "laplace" else random.normal
    noise = np.triu(white(size=found.sums.shape) * release.noise)
    sums = found.sums + noise + np.swapaxes(np.triu(noise, 1), 1, 2)
    counts = (
        sums[:, 0, 0]
        if release.intercept
        else found.counts + release.count_sd * random.normal(size=release.holders)
    )
    return replace(release, sums=sums, counts=counts)


def ranks(question, holders):
    """{parameter: ranks (studies,) of the truths among draws, and those with a hundredth of the noise}."""
    release = shape_of_release(question, holders)
    empty = holder_regression(question, replace(release, sums=release.sums[:0], counts=release.counts[:0]))
    prior = sample_prior(empty, 5, STUDIES)
    jax.clear_caches()
    truths = [{name: value[i] for name, value in prior.items()} for i in range(STUDIES)]
    generators = np.random.default_rng(6).spawn(STUDIES)
    data = [released(truth, release, random) for truth, random in zip(truths, generators, strict=True)]
    naive = [replace(one, noise=one.noise / 100) for one in data[:FAULTY]]
    models = [holder_regression(question, one) for one in [*data, *naive]]
    drawn = posterior_draws(models, seed=7, draws=RANKS - 1, thin=THIN)
    truth = models[0].parameters(prior)
    below = {
        name: np.sum(values < np.resize(truth[name], len(values))[:, None], axis=1)
        for name, values in drawn.items()
    }
    return {name: (value[:STUDIES], value[STUDIES:]) for name, value in below.items()}


SLOPE = "coefficient[age]"
CASES = {
    "one, centred": (question_of(TABLE, intercept=False), 1, {SLOPE, "sd"}),
    "two, centred, Laplace noise": (question_of(LAPLACE, intercept=False), 2, {SLOPE, "sd"}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("question", "holders", "parameters"), CASES.values(), ids=CASES)
def test_posteriors_are_calibrated_only_with_the_noise(question, holders, parameters):
    even = np.full(RANKS, 1 / RANKS)
    found = ranks(question, holders)
    assert set(found) == parameters
    for name, (sound, faulty) in found.items():
        assert follows(np.bincount(sound, minlength=RANKS), even), name
        assert not follows(np.bincount(faulty, minlength=RANKS), even), name


@pytest.mark.slow
def test_chains_do_not_diverge_at_small_laplace_scales():
    """Two holders, two features, ε = 1/2: at the usual step sizes ten transitions diverge."""
    table = copy.deepcopy(LAPLACE) | {
        "features": [{"id": name, "bounds": ["-1", "1"]} for name in ("a", "b")]
    }
    table |= {"response": {"id": "rate", "bounds": ["-1", "1"]}, "model": {"name": "linear_regression"}}
    question = question_of(table, epsilon="0.5")
    truth = {"coefficients": np.array([0.5, 0.5]), "feature_sd": np.full(2, 0.3), "sd": 0.1}
    statistics = released(truth, shape_of_release(question, 2), np.random.default_rng(1))
    drawn = sample(holder_regression(question, statistics), seed=1)
    assert drawn.diverging.sum() == 0
