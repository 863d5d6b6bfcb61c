"""90 % intervals contain the truth in 90 % of simulated studies.

Each study is run through the real device mechanisms and the real model. Truths are fixed, so
coverage is 90 % up to the prior's pull, which these sizes make small.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from inference import models
from schemas import Study
from tests import studies
from tests.inference.simulation import (
    box,
    posterior_draws,
    simulated_summaries,
    times_covered,
    times_covered_on_grid,
    triangle,
)
from tests.statistics import share_is

pytestmark = pytest.mark.long_runs

STUDIES = 60
# Regressions are sampled, which takes longer.
SAMPLED = 30
# At epsilon 64 these many records say more than the prior, and the noise is still most of the spread.
RECORDS = 1000


def normal_answers(random):
    return list(random.normal(29.0, 6.0, 400))


def poisson_answers(random):
    return list(random.poisson(4.0, 400).astype(float))


def choice_answers(random):
    return list(random.choice(["student", "worker", "teacher"], 400, p=[0.15, 0.6, 0.25]))


COEFFICIENTS = np.array([0.02, -0.05])
INTERCEPT, RESIDUAL = 2.5, 0.35


def features(random, n):
    """Inside the bounds of age and years, and of norm 1 after scaling, nearly always."""
    return np.column_stack([random.normal(29.0, 4.0, n), random.normal(11.0, 3.5, n)])


def linear_answers(random):
    x = features(random, RECORDS)
    y = INTERCEPT + x @ COEFFICIENTS + random.normal(0, RESIDUAL, RECORDS)
    return [{"age": a, "years": b, "rate": c} for (a, b), c in zip(x, y)]


LOGIT_COEFFICIENTS, LOGIT_INTERCEPT = np.array([0.06, -0.06]), -1.0


def logistic_answers(random):
    x = features(random, RECORDS)
    chance = 1 / (1 + np.exp(-(LOGIT_INTERCEPT + x @ LOGIT_COEFFICIENTS)))
    yes = random.random(RECORDS) < chance
    return [{"age": a, "years": b, "affair": bool(c)} for (a, b), c in zip(x, yes)]


AGE_2 = studies.with_epsilon(studies.AGE, "2")
CASES = {
    "normal": (AGE_2, normal_answers, {"mean": 29.0, "sd": 6.0}),
    "poisson": (
        {**studies.with_epsilon(studies.NUMBER, "2"), "model": {"name": "poisson"}},
        poisson_answers,
        {"rate": 4.0},
    ),
    "multinomial oue": (
        studies.CHOICE,
        choice_answers,
        {"p[student]": 0.15, "p[worker]": 0.6, "p[teacher]": 0.25},
    ),
    "linear": (
        studies.with_epsilon(studies.LINEAR, "64"),
        linear_answers,
        {"intercept": INTERCEPT, "coefficient[age]": 0.02, "coefficient[years]": -0.05, "sd": RESIDUAL},
    ),
    "logistic": (
        # Noise matters less to its sums than to a linear regression's: left out, it shows from here on.
        studies.with_epsilon(studies.LOGISTIC, "40"),
        logistic_answers,
        {"intercept": LOGIT_INTERCEPT, "coefficient[age]": 0.06, "coefficient[years]": -0.06},
    ),
}


# Even points of the sites in scaled units, where the posterior is exact; regressions are sampled.
GRIDS = {
    "normal": box(80, mean=(0.2, 0.75), sd=(0.02, 0.6)),
    "poisson": box(400, rate=(1.0, 9.0)),
    "multinomial oue": triangle(80),
}


@cache
def summaries_of(case, most):
    question, draw, _ = CASES[case]
    return simulated_summaries(Study(studies.document(question)), draw, most)


def coverage(case, most):
    document, _, truth = CASES[case]
    question = Study(studies.document(document)).questions[0]
    built = [models.model_for(question, summary) for summary in summaries_of(case, most)]
    if case in GRIDS:
        return times_covered_on_grid(built, GRIDS[case], truth)
    return times_covered(posterior_draws(built), truth)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_intervals_have_their_stated_coverage(case):
    most = STUDIES if case in GRIDS else SAMPLED
    covered = coverage(case, most)
    assert all(share_is(times, most, 0.9) for times in covered.values()), covered
