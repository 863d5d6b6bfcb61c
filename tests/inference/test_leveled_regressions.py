"""Regressions on bins and choices from signs of sampled products: exact over cells, back to the slopes."""

from __future__ import annotations

from itertools import pairwise, product

import jax
import numpy as np
import pytest
from scipy import integrate, stats

from inference.design.calibration import calibrate, covered
from inference.models import family_of, model_for
from inference.models.base import Truth
from inference.models.leveled_cells import (
    levels_of,
    line_in_cells,
    logistic_response,
    second_moments,
    shares_of_cells,
)
from inference.models.regression import Regression, Scale
from inference.models.sampled_products import cell_probabilities
from inference.sampling.space import as_arrays, space_of
from inference.sampling.whitening import descend, finite
from ldp_client import mechanism_for
from ldp_client.documents.errors import StudyError
from ldpkit.cli import main
from schemas import Study
from summaries import QuestionSummary
from tests import studies

YES_NO = {"ask": "yes_no"}
JOB = {"ask": "choice", "choices": ["none", "part", "full"]}
EIGHTHS = {"bounds": ["-1", "1"], "cuts": ["-0.75", "-0.5", "-0.25", "0", "0.25", "0.5", "0.75"]}


def question_of(*fields, epsilon="1", linear=False):
    response = {"bounds": ["-3", "3"]} if linear else YES_NO
    asked = {
        "id": "risk",
        "ask": "record",
        "features": [{"id": f"f{place}", **field} for place, field in enumerate(fields)],
        "response": {"id": "ill", **response},
        "mechanism": {"name": "sampled_products", "epsilon": epsilon},
        "model": {"name": "linear_regression" if linear else "logistic_regression"},
    }
    return Study(studies.document(asked)).questions[0]


def mode_of(question, second, n=10**11):
    """Parameters where the counts are those that n people, very many, leave on average."""
    probabilities = cell_probabilities(mechanism_for(question), {"second": second})
    counts = np.rint(n * probabilities).astype(int)
    model = model_for(question, QuestionSummary(int(counts.sum()), counts))
    space = space_of(model)
    with jax.enable_x64(True):
        compiled = jax.jit(jax.value_and_grad(space.potential))
        data = as_arrays(model.data)
        start = np.asarray(space.start(as_arrays(model.initial, float), data))
        vector = descend(finite(lambda vector: compiled(vector, data)), start)
        sites = {name: np.asarray(value) for name, value in space.sites(vector, data).items()}
    return {name: float(value) for name, value in model.parameters(sites).items()}


def binned_moments(mechanism, density, intercept, slope):
    """E[uuᵀ] of one number in eighths, by quadrature over the answers themselves, which are clipped last."""
    ends = [-np.inf, *np.linspace(-0.75, 0.75, 7), np.inf]
    law = np.zeros((2, 8))
    for place, (low, high) in enumerate(pairwise(ends)):
        low, high = max(low, -6), min(high, 6)
        law[0, place] = integrate.quad(density, low, high, limit=200)[0]
        law[1, place] = integrate.quad(
            lambda x: density(x) * np.tanh((intercept + slope * x) / 2), low, high, limit=200
        )[0]
    (field,) = levels_of(mechanism)
    signs = np.column_stack([np.ones(8), field.codes])
    among, cross = signs.T @ np.diag(law[0]) @ signs, signs.T @ law[1]
    return np.block([[among, cross[:, None]], [cross[None], np.ones((1, 1))]])


def test_simulated_people_follow_the_cells():
    question = question_of(YES_NO, YES_NO)
    sites = {"main": np.array([0.4, -0.3]), "pair": np.array([0.5])}
    line = {"intercept": np.asarray(0.2), "coefficients": np.array([1.0, -0.5])}
    fields = levels_of(mechanism_for(question))
    with jax.enable_x64(True):
        law = shares_of_cells(fields, sites["main"], sites["pair"])
        told = logistic_response(*line_in_cells(fields, law, Regression(**line)))
        second = np.asarray(second_moments(fields, law, told, 1.0))
    own = {name: float(value) for name, value in Scale(question).parameters(line).items()}
    answers = family_of(question).simulate(question, Truth(own, sites), 200_000, np.random.default_rng(3))
    u = np.column_stack([np.ones(200_000), *[2.0 * answers[name] - 1 for name in ("f0", "f1", "ill")]])
    assert u.T @ u / len(u) == pytest.approx(second, abs=0.015)


ROWS = {"normal": (stats.norm(0, 0.4).pdf, 0, 2), "skewed, rare": (stats.beta(1, 4, -1, 2).pdf, -1, 1)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_slopes_of_binned_number_are_unbiased(name):
    """A model of normal features gives up to 2.32 for 2, and 0.15 for 0 (docs/models.md)."""
    density, intercept, slope = ROWS[name]
    question = question_of(EIGHTHS)
    found = mode_of(question, binned_moments(mechanism_for(question), density, intercept, slope))
    assert found["coefficient[f0]"] == pytest.approx(slope, rel=0.02)
    assert found["intercept"] == pytest.approx(intercept, abs=0.02)


@pytest.mark.slow
def test_transform_matches_enumeration():
    question = question_of(JOB, {**EIGHTHS, "cuts": ["-0.2", "0.5"]}, YES_NO)
    mechanism = mechanism_for(question)
    fields = levels_of(mechanism)
    random = np.random.default_rng(1)
    with jax.enable_x64(True):
        law = np.asarray(shares_of_cells(fields, random.normal(size=5), random.normal(size=8)))
        line = Regression(0.3, np.array([1.0, -0.5, 2.0, 0.7]))
        told = np.asarray(logistic_response(*line_in_cells(fields, law, line)))
        found = np.asarray(second_moments(fields, law, told, 1.0))
    second = np.zeros_like(found)
    for job, age, married in product(range(3), range(3), range(2)):
        answers = {"f0": JOB["choices"][job], "f1": (-0.6, 0.1, 0.9)[age], "f2": bool(married)}
        for y in (-1, 1):
            u = np.asarray(mechanism.quantise({**answers, "ill": y > 0})) / 2**20
            chance = law[job, age, married] * (1 + y * told[job, age, married]) / 2
            second += chance * np.outer(u, u)
    first, other = np.asarray(mechanism.coordinates).T
    assert found[first, other] == pytest.approx(second[first, other], abs=1e-12)
    assert law.sum() == pytest.approx(1)
    assert np.abs(found[first, other] - second[first, other[::-1]]).max() > 0.01


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ([{"bounds": ["0", "1"], "cuts": ["0.5", "0.2"]}], "features[0].cuts"),
        ([JOB, {"bounds": ["0", "1"]}], "features[1].cuts"),
        ([EIGHTHS] * 6, "features"),
        ([{"ask": "choice", "choices": [str(n) for n in range(17)]}], "features[0].choices"),
    ],
)
def test_invalid_levels_are_rejected(fields, where):
    with pytest.raises(StudyError) as caught:
        question_of(*fields)
    assert caught.value.field == f"questions[0].{where}"


@pytest.mark.slow
def test_intervals_have_their_stated_coverage():
    found = calibrate(question_of(JOB, epsilon="2"), 20, 20_000, 1)
    shares = [
        covered(ranks, 0.9) for name, ranks in found.ranks.items() if name.startswith(("inter", "coef"))
    ]
    assert 0.78 <= np.mean(shares) <= 1


ON_NUMBERS, BETWEEN = ["1", "2", "3", "4", "5"], [f"{number}.5" for number in range(8)]


def study_of(*cuts):
    asked = {
        "id": "family",
        "ask": "record",
        "features": [{"id": "children", "bounds": ["0", "8"], "cuts": list(cuts)}],
        "response": {"id": "ill", "ask": "yes_no"},
        "mechanism": {"name": "sampled_products", "epsilon": "4"},
        "model": {"name": "logistic_regression"},
    }
    return Study(studies.document(asked))


def test_study_check_advises_cuts_between_whole_numbers(tmp_path, capsys):
    for cuts, advised in ((ON_NUMBERS, True), (BETWEEN, False)):
        (tmp_path / "study.json").write_text(study_of(*cuts).to_json())
        assert main(["check", str(tmp_path / "study.json")]) == 0
        assert ("0.5 instead of 1" in capsys.readouterr().err) is advised
