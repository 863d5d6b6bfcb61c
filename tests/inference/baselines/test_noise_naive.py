"""Taking noise for data: right if there is hardly any noise, far too narrow otherwise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density

from benchmarks.baselines.noise_naive import noise_naive_model_for
from benchmarks.baselines.raw_answers import raw_model_for
from inference.models import model_for
from ldp_client import mechanism_for
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.mechanisms.base import unpack_signed
from schemas import Study
from summaries import QuestionSummary, Summary
from tests import studies
from tests.inference.simulation import collected

RANDOM = np.random.default_rng(7)
PEOPLE = 300
ANSWERS = {
    "normal": list(RANDOM.normal(30, 4, PEOPLE)),
    "exponential": list(np.minimum(RANDOM.exponential(3, PEOPLE), 12)),
    "bernoulli": list(map(bool, RANDOM.random(PEOPLE) < 0.3)),
    "multinomial": list(RANDOM.choice(["student", "worker", "teacher"], PEOPLE, p=[0.15, 0.6, 0.25])),
    "linear_regression": [
        {"age": a, "years": b, "rate": 3 + 0.1 * (a - 30) + e}
        for a, b, e in zip(
            RANDOM.uniform(24, 36, PEOPLE),
            RANDOM.uniform(6, 18, PEOPLE),
            RANDOM.normal(0, 0.3, PEOPLE),
            strict=True,
        )
    ],
}
TEMPLATES = {
    "normal": studies.AGE,
    "exponential": studies.NUMBER,
    "bernoulli": studies.YES_NO,
    "multinomial": studies.ONE_OF,
    "linear_regression": studies.LINEAR,
    "logistic_regression": studies.LOGISTIC,
}
# Two points of each model's parameters, in scaled units.
POINTS = {
    "normal": [{"mean": 0.5, "sd": 0.2}, {"mean": 0.48, "sd": 0.13}],
    "exponential": [{"rate": 4.0}, {"rate": 3.0}],
    "bernoulli": [{"p": 0.3}, {"p": 0.4}],
    "multinomial": [{"p": [0.15, 0.6, 0.25]}, {"p": [0.2, 0.5, 0.3]}],
    "linear_regression": [
        {"intercept": 0.0, "coefficients": [0.5, 0.0], "sd": 0.15},
        {"intercept": 0.1, "coefficients": [0.4, 0.1], "sd": 0.2},
    ],
    "logistic_regression": [
        {"intercept": 0.0, "coefficients": [0.1, 0.0]},
        {"intercept": 0.1, "coefficients": [0.4, 0.1]},
    ],
}


def study_with(name, epsilon):
    return Study(studies.document(studies.with_epsilon(TEMPLATES[name], epsilon)))


def naive(name, epsilon):
    study = study_with(name, epsilon)
    question = study.questions[0]
    return noise_naive_model_for(question, collected(study, ANSWERS[name]).questions[question.id])


def joint(model, point):
    with jax.enable_x64(True):
        sites = {site: jnp.asarray(value, dtype=float) for site, value in point.items()}
        return float(log_density(model.program, (), dict(model.data), sites)[0])


def log_odds(model, name):
    first, second = POINTS[name]
    return joint(model, first) - joint(model, second)


def without_noise(study, answers):
    """The summary of records whose noise is 0: at ε = 64 that of 300 records is not yet small."""
    mechanism = mechanism_for(study.questions[0])
    zeros = NotForRealAnswers(bytes)
    payloads = [mechanism.randomise(mechanism.quantise(answer), zeros) for answer in answers]
    return QuestionSummary(len(answers), np.sum([unpack_signed(payload) for payload in payloads], axis=0))


@pytest.mark.parametrize("name", ["normal", "exponential", "bernoulli", "multinomial"])
def test_naive_posterior_at_little_noise_matches_raw_answers(name):
    """Device noise is unseeded: for the normal it adds 5 % to the log odds, with an sd of 3.5 %."""
    question = study_with(name, "64").questions[0]
    raw = raw_model_for(question, ANSWERS[name])
    assert log_odds(naive(name, "64"), name) == pytest.approx(log_odds(raw, name), rel=0.25)


def test_moments_without_noise_give_posterior_of_raw_records():
    name = "linear_regression"
    study = study_with(name, "64")
    naive_model = noise_naive_model_for(study.questions[0], without_noise(study, ANSWERS[name]))
    raw = raw_model_for(study.questions[0], ANSWERS[name])
    assert log_odds(naive_model, name) == pytest.approx(log_odds(raw, name), rel=0.001)


def curvature(model, point, site, step=1e-3):
    """How sharply the joint density bends at a point, in one site."""
    low, middle, high = (joint(model, {**point, site: point[site] + move}) for move in (-step, 0, step))
    return (2 * middle - low - high) / step**2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "site"),
    [("normal", "mean"), ("bernoulli", "p"), ("linear_regression", "intercept")],
)
def test_naive_posterior_is_too_narrow(name, site):
    study = study_with(name, "0.5")
    question = study.questions[0]
    part = collected(study, ANSWERS[name]).questions[question.id]
    point = POINTS[name][0]
    honest = curvature(model_for(question, part), {**model_for(question, part).initial, **point}, site)
    assert curvature(noise_naive_model_for(question, part), point, site) > 1.5 * honest


@pytest.mark.parametrize("name", TEMPLATES)
def test_naive_density_without_reports_is_finite(name):
    study = study_with(name, "1")
    question = study.questions[0]
    model = noise_naive_model_for(question, Summary.empty(study).questions[question.id])
    assert all(np.isfinite(joint(model, point)) for point in POINTS[name])
