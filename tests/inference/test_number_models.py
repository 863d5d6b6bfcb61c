"""Models of a number: calibrated, under both noises, in their own units, and sound where data are odd.

Calibration is simulation-based: truths are drawn evenly from a grid of parameters, answers pass through the
real mechanisms, and the posterior on the grid is exact. Its 90 % sets must hold the truth in 90 % of studies.
"""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers

from inference.models import model_for
from inference.sampling import sample
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldp_client.documents.errors import InputError
from schemas import Study
from summaries import QuestionSummary, Summary
from summaries.reductions import REDUCTIONS
from tests import studies
from tests.inference.densities import all_finite
from tests.inference.simulation import seeded
from tests.kit.errors import raises
from tests.statistics import share_is

STUDIES, PEOPLE = 200, 300
LAPLACE = {"name": "laplace", "epsilon": "4"}
GAUSSIAN = {"name": "gaussian", "epsilon": "4", "delta": "1e-5"}
# Answers between 0 and 12; parameters in the units of the answers (of the bounds' distance for `beta`).
CASES = {
    "poisson": ({"rate": (1.0, 9.0)}, lambda r, rate: r.poisson(rate, PEOPLE)),
    "geometric": ({"p": (0.1, 0.6)}, lambda r, p: r.geometric(p, PEOPLE) - 1),
    "lognormal": (
        {"log_mean": (0.5, 2.5), "log_sd": (0.2, 1.2)},
        lambda r, log_mean, log_sd: r.lognormal(log_mean, log_sd, PEOPLE),
    ),
    "gamma": (
        {"shape": (0.5, 6.0), "mean": (2.0, 9.0)},
        lambda r, shape, mean: r.gamma(shape, mean / shape, PEOPLE),
    ),
    "weibull": (
        {"shape": (0.6, 4.0), "scale": (2.0, 9.0)},
        lambda r, shape, scale: scale * r.weibull(shape, PEOPLE),
    ),
    "beta": ({"a": (0.4, 5.0), "b": (0.4, 5.0)}, lambda r, a, b: 12 * r.beta(a, b, PEOPLE)),
    "normal": ({"mean": (2.0, 10.0), "sd": (0.5, 4.0)}, lambda r, mean, sd: r.normal(mean, sd, PEOPLE)),
}
# Sites are in the units where the law computes: the bounds' distance, 12, is 1.
UNITS = {"mean": 12.0, "scale": 12.0, "sd": 12.0}


def question_of(model, mechanism, bounds=("0", "12")):
    asked = {**studies.NUMBER, "bounds": list(bounds), "mechanism": mechanism, "model": {"name": model}}
    return Study(studies.document(asked)).questions[0]


def site_of(name, value):
    if name == "log_mean":
        return value - np.log(12.0)
    return value / UNITS.get(name, 1.0)


def grid_of(case):
    """Parameters (points, parameters), in own units."""
    ends, _ = CASES[case]
    count = 400 if len(ends) == 1 else 24
    return np.array(list(product(*[np.linspace(*end, count) for end in ends.values()])))


def log_cell_probs(question, names, grid):
    """Of the model's own program, at every point of the grid: (points, cells)."""
    size = REDUCTIONS[question.mechanism.name].size(mechanism_for(question))
    model = model_for(question, QuestionSummary(0, np.zeros(size, dtype=np.int64)))
    sites = {name: jnp.asarray(site_of(name, grid[:, i])) for i, name in enumerate(names)}

    def one(values):
        traced = handlers.trace(handlers.substitute(handlers.seed(model.program, 0), values))
        return traced.get_trace(**model.data)["reports"]["fn"].log_cell_probs

    return np.asarray(jax.jit(lambda sites: jax.lax.map(one, sites, batch_size=32))(sites))


def reduced(question, answers):
    """The summary's values of answers that devices perturb."""
    mechanism = mechanism_for(question)
    return REDUCTIONS[mechanism.name].reduce(
        mechanism, perturb_many(mechanism, np.asarray(answers, float), seeded(answers))
    )


def times_inside(case, mechanism, likelihood_from=None):
    """In how many studies the 90 % set of each parameter holds the truth."""
    ends, draw = CASES[case]
    question, grid, random = question_of(case, mechanism), grid_of(case), np.random.default_rng(20261121)
    with jax.enable_x64(True):
        log_probs = log_cell_probs(question_of(case, likelihood_from or mechanism), list(ends), grid)
    truths = grid[random.integers(len(grid), size=STUDIES)]
    counts = np.stack([reduced(question, draw(random, *truth)) for truth in truths])
    scores = counts @ log_probs.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    ranks = random.uniform(size=(STUDIES, len(ends)))
    found = []
    for i in range(len(ends)):
        below = (weights * (grid[:, i] < truths[:, i, None])).sum(1)
        here = (weights * (grid[:, i] == truths[:, i, None])).sum(1)
        # Ties of the grid are broken at random: exactly uniform where the posterior is right.
        level = below + ranks[:, i] * here
        found.append(int(np.sum(np.abs(level - 0.5) <= 0.45)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("case", ["poisson", "gamma"])
def test_wrong_noise_scale_breaks_coverage(case, monkeypatch):
    from inference.models import number

    edges = number.cell_edges
    monkeypatch.setattr(number, "cell_edges", lambda m: (edges(m)[0], 0.5 * edges(m)[1]))
    found = times_inside(case, LAPLACE)
    assert not all(share_is(times, STUDIES, 0.9) for times in found), found


def odd_summaries(question):
    size = REDUCTIONS[question.mechanism.name].size(mechanism_for(question))
    yield QuestionSummary(0, np.zeros(size, dtype=np.int64))
    for place, n in product((0, 1, size // 2, size - 1), (1, 10**9)):
        values = np.zeros(size, dtype=np.int64)
        values[place] = n
        yield QuestionSummary(n, values)


@pytest.mark.slow
@pytest.mark.parametrize("case", [name for name in CASES if name != "normal"])
def test_odd_summaries_have_finite_density_and_gradient(case):
    question = question_of(case, {**LAPLACE, "epsilon": "20"})
    assert all_finite(question, odd_summaries(question))


@pytest.mark.slow
def test_bounds_below_zero_are_fitted_and_too_wide_rejected():
    """A law on positive numbers is fitted with negative bounds; one on whole numbers needs near bounds."""
    question = question_of("gamma", LAPLACE, ("-6", "6"))
    mechanism = mechanism_for(question)
    answers = np.random.default_rng(2).gamma(3.0, 1.0, 20_000)
    model = model_for(question, QuestionSummary(20_000, reduced(question, answers)))
    assert mechanism.levels == 4 << 20
    drawn = model.parameters(sample(model, seed=1, kept=200).sites)
    assert drawn["mean"].mean() == pytest.approx(3.0, abs=5 * drawn["mean"].std())
    assert drawn["mean"].std() < 0.2
    wide = question_of("poisson", LAPLACE, ("0", "1000000"))
    with raises(InputError, "fit.bounds_too_wide", "16384"):
        model_for(wide, Summary.empty(Study(studies.document())).questions["hours"])


@pytest.mark.long_runs
@pytest.mark.slow
def test_law_too_narrow_for_quadrature_is_noted():
    """The answers span about a thousandth of the bounds; a wider law gets no note."""
    question = question_of("lognormal", {**LAPLACE, "epsilon": "16"})
    for sd, narrow in ((0.001, True), (0.3, False)):
        answers = np.exp(np.log(3.0) + sd * np.random.default_rng(1).normal(size=1_000_000))
        model = model_for(question, QuestionSummary(1_000_000, reduced(question, answers)))
        notes = model.remarks(sample(model, seed=1, kept=200).sites)
        assert any("so narrow compared with the bounds" in note for note in notes) == narrow
