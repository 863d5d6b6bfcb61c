"""90 % intervals contain the truth in 90 % of simulated studies.

Each study is run through the real device mechanisms and the real model. Truths are fixed, so
coverage is 90 % up to the prior's pull, which these sizes make small.
"""

import numpy as np
import pytest

from inference import summarize
from inference.design.simulated_posteriors import posterior_draws
from inference.models import model_for
from schemas import Study
from tests import studies
from tests.kit.reporting import reports_of
from tests.statistics import share_is

STUDIES, DRAWS = 60, 400
# Regressions: at epsilon 64 these many records say more than the prior, and the noise is still most of the
# spread.
RECORDS = 1000


def features(random):
    """Inside the bounds of age and years, and of norm 1 after scaling, nearly always."""
    return random.normal(29.0, 4.0, RECORDS), random.normal(11.0, 3.5, RECORDS)


def linear_answers(random):
    age, years = features(random)
    rate = 2.5 + 0.02 * age - 0.05 * years + random.normal(0, 0.35, RECORDS)
    return [{"age": a, "years": b, "rate": c} for a, b, c in zip(age, years, rate)]


def logistic_answers(random):
    age, years = features(random)
    yes = random.random(RECORDS) < 1 / (1 + np.exp(1.0 - 0.06 * age + 0.06 * years))
    return [{"age": a, "years": b, "affair": bool(c)} for a, b, c in zip(age, years, yes)]


POISSON = {**studies.with_epsilon(studies.NUMBER, "2"), "model": {"name": "poisson"}}
CASES = {
    "normal": (
        studies.with_epsilon(studies.AGE, "2"),
        lambda random: list(random.normal(29.0, 6.0, 400)),
        {"mean": 29.0, "sd": 6.0},
    ),
    "poisson": (POISSON, lambda random: list(random.poisson(4.0, 400).astype(float)), {"rate": 4.0}),
    "multinomial oue": (
        studies.CHOICE,
        lambda random: list(random.choice(studies.CHOICE["choices"], 400, p=[0.15, 0.6, 0.25])),
        {"p[student]": 0.15, "p[worker]": 0.6, "p[teacher]": 0.25},
    ),
    "linear": (
        studies.with_epsilon(studies.LINEAR, "64"),
        linear_answers,
        {"intercept": 2.5, "coefficient[age]": 0.02, "coefficient[years]": -0.05, "sd": 0.35},
    ),
    "logistic": (
        # Noise matters less to its sums than to a linear regression's: left out, it shows from here on.
        studies.with_epsilon(studies.LOGISTIC, "40"),
        logistic_answers,
        {"intercept": -1.0, "coefficient[age]": 0.06, "coefficient[years]": -0.06},
    ),
}


@pytest.mark.slow
@pytest.mark.long_runs
@pytest.mark.parametrize("case", CASES)
def test_intervals_have_their_stated_coverage(case):
    document, answers, truth = CASES[case]
    (question,) = (study := Study(studies.document(document))).questions
    reports = [reports_of(study, answers(one)) for one in np.random.default_rng(20261120).spawn(STUDIES)]
    summaries = [summarize(study, some).questions[question.id] for some in reports]
    draws = posterior_draws([model_for(question, part) for part in summaries], seed=0, draws=DRAWS)
    for name, value in truth.items():
        low, high = np.quantile(draws[name], [0.05, 0.95], axis=1)
        assert share_is(int(np.sum((low <= value) & (value <= high))), STUDIES, 0.9), name
