"""The noise that devices share: distances, variance, bounds, and what a study may say."""

from __future__ import annotations

import itertools
import math
import os

import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.core.noise_levels import NOISE_BITS, gaussian_radius
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import AnswerError, ReportError, StudyError
from ldp_client.mechanisms.summed_gaussian import summed_distance
from schemas import Study
from tests.kit.errors import raises
from tests.kit.secure_sum import ANSWERS, QUESTIONS, build_study
from tests.statistics import no_noise, seeded

WORST_ANSWERS = {
    "hours": [0, 1, 2.5, 5, 7, 9, 10, 1e300],
    "wait": [0, 0.1, 5, 10],
    "fruit": ["apple", "pear", "plum"],
    "ever": [False, True, "yes", "no"],
    "rating": [{"age": a, "rate": r} for a, r in itertools.product([0, 0.3, 0.5, 1], [0, 0.5, 1])],
    "spread": [
        {"age": a, "weight": w, "rate": r}
        for a, w, r in itertools.product([0, 0.3, 0.5, 1], [-40, 0, 33, 99], [0, 0.5, 1])
    ],
}


def exact_vector(mechanism, answer):
    """The integers without noise: a source of zero bytes gives the same noise to every answer."""
    words = mechanism.noisy_vector(mechanism.quantise(answer), NotForRealAnswers(bytes))
    return np.frombuffer(words, dtype="<i8").astype(object)


def noisy(mechanism, answer, source=os.urandom):
    return mechanism.noisy_vector(mechanism.quantise(answer), source)


@pytest.mark.parametrize("name", QUESTIONS)
def test_any_two_answers_are_within_the_noise_radius(name):
    question = build_study(name).questions[0]
    mechanism = mechanism_for(question)
    limit = summed_distance(question, mechanism.size)
    vectors = [exact_vector(mechanism, answer) for answer in WORST_ANSWERS[name]]
    farthest = max(sum((a - b) ** 2) for a, b in itertools.combinations(vectors, 2))
    assert 0.9 * limit**2 < farthest <= limit**2


def test_a_number_and_three_halves_of_its_square_are_at_most_2_apart():
    """(x, w x²) over [−1, 1]: w² may be 2.77 before other pairs are farther apart than ±1.

    The squared distance of m fields is a sum over the fields, so it is at most 4 m then.
    """
    x = np.linspace(-1, 1, 2001)
    for weight, fits in ((1.5, True), (1.66, True), (1.68, False)):
        vectors = np.stack([x, weight * x**2])
        distance = np.sqrt(((vectors[:, :, None] - vectors[:, None, :]) ** 2).sum(0)).max()
        assert (distance <= 2 + 1e-12) == fits


def test_marginals_reject_missing_and_unused_fields():
    document = build_study("spread").document
    question = document["questions"][0]
    stated = question["mechanism"]
    wrong = {
        "norm": ("study.norm_invalid", {**question, "norm": "1"}),
        "response": ("study.marginals_response", {**question, "response": {"id": "rate", "ask": "yes_no"}}),
        "model.name": ("study.model_not_for_response", {**question, "model": {"name": "linear_regression"}}),
        "mechanism.share": (
            "study.share_needs_marginals",
            {**question, "mechanism": {name: stated[name] for name in stated if name != "share"}},
        ),
    }
    for field, (code, changed) in wrong.items():
        with raises(StudyError, code, field=f"questions[0].{field}"):
            Study({**document, "questions": [changed]})
    rating = build_study("rating").document["questions"][0]
    with raises(StudyError, "study.norm_invalid"):
        Study({**document, "questions": [{name: rating[name] for name in rating if name != "norm"}]})
    with raises(StudyError, "study.model_not_for_response"):
        Study({**document, "questions": [{**rating, "model": {"name": "marginals"}}]})
    hours = build_study("hours").document["questions"][0]
    with raises(StudyError, "study.statistic_not_for_question"):
        Study({**document, "questions": [{**hours, "mechanism": stated}]})


def test_noise_of_honest_devices_equals_a_central_curators():
    """N − T − 1 variances of 4**20 hide what one device's sd hides, times their root (DCA Theorem 1)."""
    question = build_study("fruit", devices=1000, max_faulty=100).questions[0]
    stated = question.mechanism
    one = gaussian_radius(stated.epsilon, stated.delta, 3 * 1000)
    assert summed_distance(question, 3) == int(one * np.sqrt(899))
    mechanism = mechanism_for(question)
    sigma = mechanism.noise_sd * np.sqrt(899)
    # Balle and Wang's σ/Δ at ε = 1, δ = 1e-6 is 4.2247.
    assert sigma == pytest.approx(4.2247 * np.sqrt(2), rel=1e-4)


def test_the_noise_has_the_variance_that_is_stated():
    mechanism, source = mechanism_for(build_study("wait").questions[0]), seeded("variance")
    drawn = np.concatenate([np.frombuffer(noisy(mechanism, 9, source), dtype="<i8") for _ in range(500)])
    noise = drawn.reshape(-1, 16) - exact_vector(mechanism, 9).astype(float)
    ratio = noise.var() / 4.0**NOISE_BITS
    assert abs(ratio - 1) < 5 * np.sqrt(2 / noise.size)


@pytest.mark.parametrize("name", QUESTIONS)
def test_sum_cannot_overflow_for_any_study(name):
    """The most clients, the largest epsilon and delta."""
    document = build_study(name, devices=1 << 24, max_faulty=0).document
    question = document["questions"][0]
    loud = {**question["mechanism"], "epsilon": "64", "delta": "0.9"}
    study = Study({**document, "questions": [{**question, "mechanism": loud}]})
    assert (1 << 24) * mechanism_for(study.questions[0]).largest < 1 << 63


def test_sum_with_too_small_an_epsilon_names_its_field():
    document = build_study("ever").document
    question = document["questions"][0]
    tiny = {**question, "mechanism": {**question["mechanism"], "epsilon": "1e-9", "delta": "1e-30"}}
    with raises(StudyError, "study.epsilon_too_small_for_sum", field="questions[0].mechanism"):
        mechanism_for(Study({**document, "questions": [tiny]}).questions[0])


@pytest.mark.parametrize("name", ["hours", "spread"])
def test_a_single_vector_is_never_a_possible_report(name):
    mechanism = mechanism_for(build_study(name).questions[0])
    with pytest.raises(ReportError, match="secret shares only"):
        mechanism.check(noisy(mechanism, ANSWERS[name]))


@pytest.mark.parametrize(
    ("protocol", "field", "code"),
    [
        ({"devices": 20, "max_faulty": 18}, "max_faulty", "study.max_faulty_invalid"),
        ({"nodes": ["http://one#" + "0" * 128] * 2}, "nodes[1]", "study.invalid"),
        (
            {"nodes": [f"https://{name}.example/ http://evil.example#" + "0" * 128 for name in "ab"]},
            "nodes[0]",
            "study.invalid",
        ),
        ({"expansion": "xor"}, "expansion", "study.invalid"),
    ],
)
def test_a_bad_protocol_names_its_field(protocol, field, code):
    with raises(StudyError, code, field=f"protocol.{field}"):
        build_study("ever", **protocol)


def test_route_and_mechanism_need_each_other():
    document = build_study("ever").document
    local = {**document["questions"][0], "mechanism": {"name": "randomized_response", "epsilon": "1"}}
    with raises(StudyError, "study.summed_gaussian_for_sums"):
        Study({**document, "questions": [local]})
    without = {name: value for name, value in document.items() if name != "protocol"}
    with raises(StudyError, "study.summed_gaussian_for_sums"):
        Study(without)


@pytest.mark.parametrize("name", ["hours", "spread"])
@pytest.mark.parametrize(("code", "wrong"), [("core.missing", None), ("core.infinite", math.inf)])
def test_secure_sum_rejects_missing_number(name, code, wrong):
    question = build_study(name).questions[0]
    fields = [field.id for field in (*question.features, *filter(None, [question.response]))]
    answer = dict.fromkeys(fields, wrong) if fields else wrong
    with raises(AnswerError, code, field=f"{name}.{fields[0]}" if fields else name):
        mechanism_for(question).perturb(answer, no_noise)
