"""Gives a device core a study with a route, and reads the answers off what it makes of them.

Defence: The device: only shares are ever made of it, on every platform; browsers take no study with a
`route`.
"""

from __future__ import annotations

import json
import os

import pytest

from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers, quantise_answers, report_of
from ldp_client.bulk import perturb_many
from ldp_client.documents.errors import RefusedError
from ldp_client.files.batch import perturb_file, perturb_people
from ldpkit.cli import main
from schemas import Report, Study
from tests import studies
from tests.kit.errors import raises
from tests.portable.embedding_guide import BOARD_LEDGER
from tests.portable.platforms import run_micropython
from tests.secure_sum.conftest import ANSWERS, QUESTIONS, build_study

WAYS = {
    "perturb_answers": lambda study, mechanisms, answers: perturb_answers(study, mechanisms, answers),
    "report_of": lambda study, mechanisms, answers: report_of(
        study, mechanisms, quantise_answers(study, mechanisms, answers), os.urandom
    ),
    "perturb_people": lambda study, mechanisms, answers: list(
        perturb_people(study, mechanisms, [quantise_answers(study, mechanisms, answers)] * 2)
    ),
    "perturb": lambda _study, mechanisms, answers: [
        mechanisms[name].perturb(answers[name]) for name in answers
    ],
    "perturb_many": lambda _study, mechanisms, answers: [
        perturb_many(mechanisms[name], [answers[name]] * 2) for name in answers if name in ("hours", "ever")
    ],
    "randomise": lambda _study, mechanisms, answers: [
        mechanisms[name].randomise(mechanisms[name].quantise(answers[name]), os.urandom) for name in answers
    ],
}


def epsilon_of(name, epsilon):
    """A study of one question, as strict as can be."""
    document = build_study(name).document
    question = document["questions"][0]
    strict = {**question["mechanism"], "epsilon": epsilon}
    return Study({**document, "questions": [{**question, "mechanism": strict}]})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_core_function_makes_payload_of_secure_sum(way, name):
    study = epsilon_of(name, "0.01")
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    if way == "perturb_many" and name not in ("hours", "ever"):
        pytest.skip("takes columns, refused in the same place")
    of_study = way in ("perturb_answers", "report_of", "perturb_people")
    with raises(RefusedError, "core.sum_alone" if of_study else "core.sum_leaves"):
        WAYS[way](study, mechanisms, {name: ANSWERS[name]})


def test_secure_sum_is_refused_before_randomness_is_read():
    study = epsilon_of("ever", "0.01")
    mechanisms = {"ever": mechanism_for(study.questions[0])}
    with pytest.raises(RefusedError):
        perturb_answers(study, mechanisms, {"ever": True}, lambda _size: pytest.fail("noise was drawn"))


def test_perturb_refuses_secure_sum(tmp_path, capsys):
    study, answers, out = (tmp_path / name for name in ("study.json", "answers.ndjson", "reports.ndjson"))
    study.write_text(build_study("ever").to_json())
    answers.write_text('{"ever": "yes"}\n' * 40)
    assert main(["perturb", str(study), str(answers), "--out", str(out)]) == 3
    assert "leave a device as secret shares only" in capsys.readouterr().err
    with pytest.raises(RefusedError):
        perturb_file(build_study("ever"), str(answers), str(out))
    assert not out.exists()


def ledger_program(study):
    """The guide's ledger for microcontrollers, given this study; it prints what it keeps."""
    return f"""{BOARD_LEDGER}
from binascii import unhexlify
from ldp_client.documents.study import Study
study = Study.from_json({study.to_json()!r})
try:
    answer_once(study, {{"ever": True}}, lambda size: bytes([7] * size))
    print(json.dumps("released"))
except Exception as error:
    print(json.dumps([type(error).__name__, read_ledger()["outbox"], read_ledger()["spent"]]))
"""


def test_microcontroller_ledger_refuses_secure_sum(tmp_path):
    program = ledger_program(epsilon_of("ever", "0.01"))
    printed = run_micropython(tmp_path, program)
    assert json.loads(printed.splitlines()[-1]) == ["RefusedError", [], []]


def test_ordinary_question_still_gives_report():
    """A check that refuses every question would pass the tests above."""
    study = Study(studies.document(studies.YES_NO))
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    assert isinstance(perturb_answers(study, mechanisms, {study.questions[0].id: True}), Report)
