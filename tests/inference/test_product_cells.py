"""Logistic regression from signs of sampled products: exact over cells of yes/no features."""

from __future__ import annotations

from itertools import product

import jax
import numpy as np
import pytest
from scipy import integrate, special, stats

from inference import fit
from inference.models import family_of, model_for
from inference.models.base import Truth
from inference.models.product_cells import (
    PAIR,
    TAILS,
    cell_moments,
    cell_probabilities,
    normal_moments,
    random_cells,
)
from inference.models.regression import Scale
from inference.sampling import sample
from inference.sampling.space import as_arrays, space_of
from inference.sampling.whitening import descend, finite
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from schemas import Study
from summaries import QuestionSummary, Summary
from tests import studies
from tests.inference.simulation import posterior_draws, seeded, simulated_summaries, times_covered

YES_NO = {"ask": "yes_no"}
NUMBER = {"bounds": ["-1", "1"]}


def asked_of(*fields, epsilon="1"):
    return {
        "id": "risk",
        "ask": "record",
        "features": [{"id": f"f{place}", **field} for place, field in enumerate(fields)],
        "response": {"id": "ill", "ask": "yes_no"},
        "mechanism": {"name": "sampled_products", "epsilon": epsilon},
        "model": {"name": "logistic_regression"},
    }


def question_of(*fields, epsilon="1"):
    return Study(studies.document(asked_of(*fields, epsilon=epsilon))).questions[0]


def enumerated(intercept, slopes, main, pair):
    """E[uuᵀ] and the cells' shares, cell by cell."""
    d = len(slopes)
    pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
    cells = [np.asarray(signs, float) for signs in product((1, -1), repeat=d)]
    weights = [
        np.exp(x @ main + sum(h * x[i] * x[j] for h, (i, j) in zip(pair, pairs, strict=True))) for x in cells
    ]
    second = np.zeros((d + 2, d + 2))
    for x, weight in zip(cells, weights, strict=True):
        for y in (1.0, -1.0):
            u = np.array([1.0, *x, y])
            second += weight / sum(weights) * special.expit(y * (intercept + x @ slopes)) * np.outer(u, u)
    return second


@pytest.mark.parametrize("d", [1, 2, 5])
def test_sums_over_cells_match_enumeration(d):
    random = np.random.default_rng(1)
    given = (0.3, random.normal(size=d), random.normal(size=d), random.normal(size=d * (d - 1) // 2))
    with jax.enable_x64(True):
        found = np.asarray(cell_moments(*given))
    assert found == pytest.approx(enumerated(*given), abs=1e-12)
    wrong = enumerated(given[0], -given[1], *given[2:])
    assert np.abs(found - wrong).max() > 0.01


def expected(question, second, n):
    """The counts that n people leave on average."""
    counts = np.rint(n * cell_probabilities(mechanism_for(question), {"second": second})).astype(int)
    return QuestionSummary(int(counts.sum()), counts)


@pytest.mark.slow
def test_slopes_of_yes_no_feature_are_unbiased():
    """A model of normal features gives 1.18, 5.73, 1.62 and 4.4 (docs/models.md)."""
    question = question_of(YES_NO)
    rows = [(0.5, 0, 1), (0.5, 0, 2), (0.1, -1, 1), (0.1, 0, 2)]
    seconds = [
        enumerated(intercept, np.array([slope]), np.array([special.logit(share) / 2]), np.zeros(0))
        for share, intercept, slope in rows
    ]
    models = [model_for(question, expected(question, second, 10**10)) for second in seconds]
    space = space_of(models[0])
    with jax.enable_x64(True):
        compiled = jax.jit(jax.value_and_grad(space.potential))
        for (share, intercept, slope), model in zip(rows, models, strict=True):
            data = as_arrays(model.data)
            start = np.asarray(space.start(as_arrays(model.initial, float), data))
            mode = descend(finite(lambda vector: compiled(vector, data)), start)  # noqa: B023
            sites = {name: np.asarray(value) for name, value in space.sites(mode, data).items()}
            assert sites["coefficients"][0] == pytest.approx(slope, rel=0.02)
            assert sites["intercept"] == pytest.approx(intercept, abs=0.02)
            assert model.parameters(sites)["mean[f0]"] == pytest.approx(share, rel=0.02)


def on_a_grid(m, counts, gain):
    """Mean and sd of what one feature's posterior is of: three numbers, with a likelihood of its own."""
    axis = np.linspace(-4, 4, 81)
    intercept, slope, main = np.meshgrid(axis, axis, axis, indexing="ij")
    yes = special.expit(2 * main)
    high, low = np.tanh((intercept + slope) / 2), np.tanh((intercept - slope) / 2)
    products = {
        (0, 1): 2 * yes - 1,
        (0, 2): yes * high + (1 - yes) * low,
        (1, 2): yes * high - (1 - yes) * low,
    }
    log_weight = -(intercept**2 + slope**2 + main**2) / 2
    for place, pair in enumerate(m.coordinates):
        told = np.clip(gain * products[pair], -1 + 1e-9, 1 - 1e-9)
        log_weight += counts[2 * place] * np.log1p(-told) + counts[2 * place + 1] * np.log1p(told)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    found = {}
    # In own units: a yes is 1 and a no 0, not −1.
    own = {"intercept": intercept - slope, "coefficient[f0]": 2 * slope, "mean[f0]": yes}
    for name, values in own.items():
        mean = np.sum(weight * values)
        found[name] = mean, np.sqrt(np.sum(weight * (values - mean) ** 2))
    return found


COUNTS = np.array([60, 35, 45, 48, 30, 75])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gaussian_approx", pytest.param("nuts", marks=pytest.mark.slow)])
def test_fit_of_one_feature_matches_grid(method):
    """A treatment and an outcome: there is no pair of features."""
    study = Study(studies.document(asked_of(YES_NO)))
    (question,) = study.questions
    m = mechanism_for(question)
    told = Summary(study.id, 1, study.digest, {question.id: QuestionSummary(int(COUNTS.sum()), COUNTS)})
    found = fit(study, told, seed=1, method=method, draws=1000)[question.id].draws
    assert set(found) == {"intercept", "coefficient[f0]", "mean[f0]"}
    for gain, agrees in ((float(m.gain), True), (1.0, False)):
        away = [
            abs(found[name].mean() - mean) / sd for name, (mean, sd) in on_a_grid(m, COUNTS, gain).items()
        ]
        assert (max(away) < 0.15) == agrees


@pytest.mark.slow
def test_intervals_of_one_feature_have_stated_coverage():
    study = Study(studies.document(asked_of(YES_NO, epsilon="2")))
    truth = {"intercept": -0.4, "coefficient[f0]": 1.1, "mean[f0]": 0.4}

    def answers(random):
        treated = random.random(1000) < truth["mean[f0]"]
        ill = random.random(1000) < special.expit(truth["intercept"] + truth["coefficient[f0]"] * treated)
        return [{"f0": bool(one), "ill": bool(other)} for one, other in zip(treated, ill, strict=True)]

    told = simulated_summaries(study, answers, 20)
    covered = times_covered(posterior_draws([model_for(study.questions[0], one) for one in told]), truth)
    # Of 20 sound studies fewer have it once in 90 times.
    assert min(covered.values()) >= 15


def test_prior_of_feature_pairs_allows_strong_dependence():
    odds_ratio = np.exp(4 * stats.t(TAILS, scale=PAIR).ppf([0.75, 0.995]))
    assert 1.5 < odds_ratio[0] < 3
    assert odds_ratio[1] > 50


def test_simulated_people_follow_the_cells():
    question = question_of(YES_NO, YES_NO)
    sites = {"main": np.array([0.4, -0.3]), "pair": np.array([0.5])}
    line = {"intercept": np.asarray(0.2), "coefficients": np.array([1.0, -0.5])}
    second = enumerated(0.2, line["coefficients"], sites["main"], sites["pair"])
    features = random_cells(sites, 200_000, np.random.default_rng(2))
    assert 2 * features.mean(axis=0) - 1 == pytest.approx(second[0, 1:3], abs=0.015)
    own = {name: float(value) for name, value in Scale(question).parameters(line).items()}
    answers = family_of(question).simulate(question, Truth(own, sites), 200_000, np.random.default_rng(3))
    u = np.column_stack([np.ones(200_000), *[2.0 * answers[name] - 1 for name in ("f0", "f1", "ill")]])
    assert u.T @ u / len(u) == pytest.approx(second, abs=0.015)


def test_moments_of_normal_feature_match_quadrature():
    mean, sd, intercept, slope = 0.2, 0.4, -0.3, 1.5
    density = stats.norm(mean, sd).pdf

    def moment(power):
        told = lambda x: x**power * np.tanh((intercept + slope * x) / 2) * density(x)  # noqa: E731
        return integrate.quad(told, mean - 10 * sd, mean + 10 * sd)[0]

    with jax.enable_x64(True):
        found = np.asarray(
            normal_moments(np.asarray(intercept), np.array([slope]), np.array([mean]), np.array([[sd**2]]))
        )
    assert found[0, 2] == pytest.approx(moment(0), abs=1e-8)
    assert found[1, 2] == pytest.approx(moment(1), abs=1e-8)
    assert found[2, 2] == pytest.approx(1, abs=1e-12)


@pytest.mark.slow
def test_number_feature_is_normal_and_yes_no_is_noted():
    question = question_of(NUMBER, YES_NO, epsilon="4")
    random = np.random.default_rng(4)
    n = 200_000
    x, z = np.clip(random.normal(0, 0.3, n), -1, 1), random.random(n) < 0.5
    ill = random.random(n) < special.expit(-0.2 + 1.5 * x + 0.5 * z)
    payloads = perturb_many(mechanism_for(question), {"f0": x, "f1": z, "ill": ill}, seeded(x, z))
    counts = np.bincount(payloads[:, 0], minlength=2 * len(mechanism_for(question).coordinates))
    model = model_for(question, QuestionSummary(n, counts))
    sites = sample(model, 1, warmup=(100, 100), kept=200).sites
    slope = model.parameters(sites)["coefficient[f0]"]
    assert slope.mean() == pytest.approx(1.5, abs=6 * slope.std())
    (note,) = model.remarks(sites)
    assert "f1 cannot be" in note
