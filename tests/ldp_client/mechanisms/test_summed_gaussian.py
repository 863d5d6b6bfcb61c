"""`summed_gaussian`: noise that devices share. A question leaves a device as shares only, and no payload."""

import itertools
import os

import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers, quantise_answers, report_of
from ldp_client.bulk import perturb_many
from ldp_client.core.noise_levels import gaussian_radius
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.core.strips import normal
from ldp_client.documents.errors import RefusedError, ReportError, StudyError
from ldp_client.mechanisms.summed_gaussian import summed_distance
from ldpkit.perturbing import perturb_file
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


def vector(mechanism, answer, source):
    words = mechanism.noisy_vector(mechanism.quantise(answer), source)
    return np.frombuffer(words, dtype="<i8").astype(object)


def changed(name, *, mechanism=None, **changes):
    document = build_study(name).document
    question = document["questions"][0]
    stated = {**question["mechanism"], **(mechanism or {})}
    return {**document, "questions": [{**question, "mechanism": stated, **changes}]}


@pytest.mark.attack(1)
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_core_function_makes_a_payload_of_a_secure_sum(name, tmp_path):
    """Give a device core a study with a route, and read the answer off what it makes of it."""
    # Its shares of noise hide nothing alone.
    study = Study(changed(name, mechanism={"epsilon": "0.01"}))
    m, answers = mechanism_for(study.questions[0]), {name: ANSWERS[name]}
    quantised = m.quantise(ANSWERS[name])
    for way in (
        lambda: perturb_answers(study, {name: m}, answers, no_noise),
        lambda: report_of(study, {name: m}, quantise_answers(study, {name: m}, answers), no_noise),
        lambda: perturb_file(study, str(tmp_path / "answers.csv"), str(tmp_path / "out")),
    ):
        with raises(RefusedError, "core.sum_alone"):
            way()
    ways = [lambda: m.perturb(ANSWERS[name]), lambda: m.randomise(quantised, no_noise)]
    if name in ("hours", "ever"):
        ways.append(lambda: perturb_many(m, [ANSWERS[name]] * 2))
    for way in ways:
        with raises(RefusedError, "core.sum_leaves"):
            way()
    with raises(ReportError, "report.payload_impossible"):
        m.check(m.noisy_vector(quantised, os.urandom))


@pytest.mark.parametrize("name", QUESTIONS)
def test_any_two_answers_are_within_the_noise_radius(name):
    question = build_study(name).questions[0]
    mechanism = mechanism_for(question)
    limit = summed_distance(question, mechanism.size)
    # Zeros give the same noise to every answer.
    vectors = [vector(mechanism, answer, NotForRealAnswers(bytes)) for answer in WORST_ANSWERS[name]]
    farthest = max(sum((a - b) ** 2) for a, b in itertools.combinations(vectors, 2))
    assert 0.9 * limit**2 < farthest <= limit**2


def test_marginals_reject_missing_and_unused_fields():
    marginals = {"name": "marginals"}
    without_norm = changed("rating")
    del without_norm["questions"][0]["norm"]
    without_share = changed("spread")
    del without_share["questions"][0]["mechanism"]["share"]
    statistic = QUESTIONS["spread"]["mechanism"]
    for document, code in (
        (changed("spread", norm="1"), "study.norm_invalid"),
        (changed("spread", response={"id": "rate", "ask": "yes_no"}), "study.marginals_response"),
        (changed("spread", model={"name": "linear_regression"}), "study.model_not_for_response"),
        (without_share, "study.share_needs_marginals"),
        (without_norm, "study.norm_invalid"),
        (changed("rating", model=marginals), "study.model_not_for_response"),
        (changed("hours", mechanism=statistic), "study.statistic_not_for_question"),
    ):
        with raises(StudyError, code):
            Study(document)


def test_noise_of_honest_devices_equals_a_central_curators():
    """N − T − 1 variances of 4**20 hide what one device's sd hides, times their root (DCA Theorem 1)."""
    question = build_study("fruit", devices=1000, max_faulty=100).questions[0]
    stated = question.mechanism
    one = gaussian_radius(stated.epsilon, stated.delta, 3 * 1000)
    assert summed_distance(question, 3) == int(one * np.sqrt(899))
    # Balle and Wang's σ/Δ at ε = 1, δ = 1e-6 is 4.2247.
    sigma = mechanism_for(question).noise_sd * np.sqrt(899)
    assert sigma == pytest.approx(4.2247 * np.sqrt(2), rel=1e-4)


@pytest.mark.parametrize("name", QUESTIONS)
def test_each_coordinate_gets_a_normal_draw(name):
    mechanism = mechanism_for(build_study(name).questions[0])
    still = vector(mechanism, ANSWERS[name], NotForRealAnswers(bytes))
    noise = vector(mechanism, ANSWERS[name], seeded(name)) - still
    assert noise.tolist() == normal(mechanism.size, seeded(name))


@pytest.mark.parametrize("name", QUESTIONS)
def test_sum_cannot_overflow_for_any_study(name):
    """The most clients, the largest epsilon and delta."""
    document = build_study(name, devices=1 << 24, max_faulty=0).document
    document["questions"][0]["mechanism"] |= {"epsilon": "64", "delta": "0.9"}
    assert (1 << 24) * mechanism_for(Study(document).questions[0]).largest < 1 << 63


def test_sum_with_too_small_an_epsilon_names_its_field():
    study = Study(changed("ever", mechanism={"epsilon": "1e-9", "delta": "1e-30"}))
    with raises(StudyError, "study.epsilon_too_small_for_sum", field="questions[0].mechanism"):
        mechanism_for(study.questions[0])


@pytest.mark.parametrize(
    ("protocol", "field", "code"),
    [
        ({"devices": 20, "max_faulty": 18}, "max_faulty", "study.max_faulty_invalid"),
        ({"nodes": ["http://one#" + "0" * 128] * 2}, "nodes[1]", "study.invalid"),
        ({"nodes": ["https://a.example/ http://b#" + "0" * 128] * 2}, "nodes[0]", "study.invalid"),
        ({"expansion": "xor"}, "expansion", "study.invalid"),
    ],
)
def test_a_bad_protocol_names_its_field(protocol, field, code):
    with raises(StudyError, code, field=f"protocol.{field}"):
        build_study("ever", **protocol)


def test_protocol_and_mechanism_need_each_other():
    document = build_study("ever").document
    local = {**document["questions"][0], "mechanism": {"name": "randomized_response", "epsilon": "1"}}
    without = {name: value for name, value in document.items() if name != "protocol"}
    for wrong in ({**document, "questions": [local]}, without):
        with raises(StudyError, "study.summed_gaussian_for_sums"):
            Study(wrong)
