"""Logistic regression from signs of sampled products: exact over cells of yes/no features."""

from __future__ import annotations

from itertools import product

import jax
import numpy as np
import pytest
from scipy import special

from inference.models import family_of
from inference.models.base import Truth
from inference.models.product_cells import moments
from inference.models.regression import Regression, Scale
from schemas import Study
from tests import studies

YES_NO = {"ask": "yes_no"}


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


@pytest.mark.parametrize("d", [1, 5])
def test_sums_over_cells_match_enumeration(d):
    random = np.random.default_rng(1)
    given = (0.3, random.normal(size=d), random.normal(size=d), random.normal(size=d * (d - 1) // 2))
    with jax.enable_x64(True):
        found = np.asarray(moments(Regression(*given[:2]), None, *given[2:]))
    assert found == pytest.approx(enumerated(*given), abs=1e-12)
    wrong = enumerated(given[0], -given[1], *given[2:])
    assert np.abs(found - wrong).max() > 0.01


def test_simulated_people_follow_the_cells():
    question = question_of(YES_NO, YES_NO)
    sites = {"main": np.array([0.4, -0.3]), "pair": np.array([0.5])}
    line = {"intercept": np.asarray(0.2), "coefficients": np.array([1.0, -0.5])}
    second = enumerated(0.2, line["coefficients"], sites["main"], sites["pair"])
    own = {name: float(value) for name, value in Scale(question).parameters(line).items()}
    answers = family_of(question).simulate(question, Truth(own, sites), 200_000, np.random.default_rng(3))
    u = np.column_stack([np.ones(200_000), *[2.0 * answers[name] - 1 for name in ("f0", "f1", "ill")]])
    assert u.T @ u / len(u) == pytest.approx(second, abs=0.015)
