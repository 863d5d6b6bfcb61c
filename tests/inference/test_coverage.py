"""90 % intervals contain the truth in 90 % of simulated studies, and do not when noise is ignored.

Each study is run through the real device mechanisms and the real model. Truths are fixed, so
coverage is 90 % up to the prior's pull, which these sizes make small.
"""

from __future__ import annotations

import numpy as np
import pytest

from inference.models import choice, number, regression
from schemas import Study
from tests import studies
from tests.inference.simulation import posterior_draws, simulated_models, times_covered
from tests.statistics import share_is

STUDIES = 100


def normal_answers(random):
    return list(random.normal(29.0, 6.0, 400))


def exponential_answers(random):
    return list(random.exponential(4.0, 400))


def yes_no_answers(random):
    return list(map(bool, random.random(400) < 0.3))


def choice_answers(random):
    return list(random.choice(["student", "worker", "teacher"], 400, p=[0.15, 0.6, 0.25]))


COEFFICIENTS = np.array([0.02, -0.05])
INTERCEPT, RESIDUAL = 2.5, 0.35


def features(random, n):
    """Inside the bounds of age and years, and of norm 1 after scaling, nearly always."""
    return np.column_stack([random.normal(29.0, 4.0, n), random.normal(11.0, 3.5, n)])


def linear_answers(random):
    x = features(random, 500)
    y = INTERCEPT + x @ COEFFICIENTS + random.normal(0, RESIDUAL, 500)
    return [{"age": a, "years": b, "rate": c} for (a, b), c in zip(x, y)]


LOGIT_COEFFICIENTS, LOGIT_INTERCEPT = np.array([0.12, -0.15]), -2.0


def logistic_answers(random):
    x = features(random, 500)
    chance = 1 / (1 + np.exp(-(LOGIT_INTERCEPT + x @ LOGIT_COEFFICIENTS)))
    yes = random.random(500) < chance
    return [{"age": a, "years": b, "affair": bool(c)} for (a, b), c in zip(x, yes)]


AGE_2 = studies.with_epsilon(studies.AGE, "2")
CASES = {
    "normal": (AGE_2, normal_answers, {"mean": 29.0, "sd": 6.0}),
    "exponential": (studies.with_epsilon(studies.NUMBER, "2"), exponential_answers, {"rate": 0.25}),
    "bernoulli": (studies.YES_NO, yes_no_answers, {"p": 0.3}),
    "multinomial oue": (
        studies.CHOICE,
        choice_answers,
        {"p[student]": 0.15, "p[worker]": 0.6, "p[teacher]": 0.25},
    ),
    "multinomial k-ary": (
        studies.ONE_OF,
        choice_answers,
        {"p[student]": 0.15, "p[worker]": 0.6, "p[teacher]": 0.25},
    ),
    "linear": (
        studies.with_epsilon(studies.LINEAR, "20"),
        linear_answers,
        {"intercept": INTERCEPT, "coefficient[age]": 0.02, "coefficient[years]": -0.05, "sd": RESIDUAL},
    ),
    "logistic": (
        studies.with_epsilon(studies.LOGISTIC, "20"),
        logistic_answers,
        {"intercept": LOGIT_INTERCEPT, "coefficient[age]": 0.12, "coefficient[years]": -0.15},
    ),
}


def coverage(case):
    question, draw, truth = CASES[case]
    models = simulated_models(Study(studies.document(question)), draw, STUDIES)
    return times_covered(posterior_draws(models), truth)


@pytest.mark.parametrize("case", CASES)
def test_intervals_contain_the_truth_as_often_as_they_say(case):
    covered = coverage(case)
    assert all(share_is(times, STUDIES, 0.9) for times in covered.values()), covered


def without_noise(monkeypatch, case):
    """Make the model take reports for answers: what a naive analysis does."""
    if "nomial" in case or case == "bernoulli":
        monkeypatch.setattr(choice, "_probabilities", lambda _mechanism: (1.0 - 1e-9, 1e-9))
    elif case in ("linear", "logistic"):
        real = regression._model

        def quiet(question, mechanism, summary, likelihood, initial):
            mechanism.grid_of_noise = None
            type(mechanism).noise_sd = property(lambda _self: 1e-3)
            return real(question, mechanism, summary, likelihood, initial)

        monkeypatch.setattr(type_of_statistics(), "noise_sd", property(lambda _self: 0.05))
    else:
        monkeypatch.setattr(number, "_grid", lambda mechanism: narrow(mechanism))


