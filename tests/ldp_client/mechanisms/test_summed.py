"""A question of a secure sum leaves a device as shares only: no function makes a payload of it."""

import os

import pytest

from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers, quantise_answers, report_of
from ldp_client.bulk import perturb_many
from ldp_client.documents.errors import RefusedError
from ldpkit.perturbing import perturb_file
from schemas import Study
from tests.kit.errors import raises
from tests.kit.secure_sum import ANSWERS, QUESTIONS, build_study
from tests.statistics import no_noise

OF_STUDY = {
    "perturb_answers": lambda study, mechanisms, answers: perturb_answers(study, mechanisms, answers),
    "report_of": lambda study, mechanisms, answers: report_of(
        study, mechanisms, quantise_answers(study, mechanisms, answers), os.urandom
    ),
}
OF_MECHANISM = {
    "perturb": lambda m, answer: m.perturb(answer),
    "perturb_many": lambda m, answer: perturb_many(m, [answer] * 2),
    "randomise": lambda m, answer: m.randomise(m.quantise(answer), os.urandom),
}


def strict(name):
    """A study of one question, whose shares of noise hide nothing alone."""
    document = build_study(name).document
    question = document["questions"][0]
    mechanism = {**question["mechanism"], "epsilon": "0.01"}
    return Study({**document, "questions": [{**question, "mechanism": mechanism}]})


@pytest.mark.attack(1)
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_core_function_makes_a_payload_of_a_secure_sum(name, tmp_path):
    """Give a device core a study with a route, and read the answer off what it makes of it."""
    study = strict(name)
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    for way in OF_STUDY.values():
        with raises(RefusedError, "core.sum_alone"):
            way(study, mechanisms, {name: ANSWERS[name]})
    for kind, way in OF_MECHANISM.items():
        if kind != "perturb_many" or name in ("hours", "ever"):
            with raises(RefusedError, "core.sum_leaves"):
                way(mechanisms[name], ANSWERS[name])
    with raises(RefusedError, "core.sum_alone"):
        perturb_file(study, str(tmp_path / "answers.csv"), str(tmp_path / "out"))


def test_secure_sum_is_refused_before_randomness_is_read():
    study = strict("ever")
    mechanisms = {"ever": mechanism_for(study.questions[0])}
    with pytest.raises(RefusedError):
        perturb_answers(study, mechanisms, {"ever": True}, no_noise)
