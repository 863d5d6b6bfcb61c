"""A blank is taken for a refusal that the person did not give, or a refusal is recognisable by its report.

Defence: The device: if refusal is offered, only `None` refuses, and the holder of a file of answers must
state that its blanks are refusals; a refusal is encoded like one more choice, and for a number as the
noise of the middle and a coin.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.audit.answers import Stream
from ldp_client.bulk import perturb_many
from ldp_client.documents.errors import AnswerError, InputError, StudyError
from ldp_client.files.batch import perturb_file
from ldp_client.mechanisms import mechanisms_of
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises

OFFERED = {**studies.YES_NO, "refusal": True}
COLOUR = {**studies.ONE_OF, "refusal": True}
BLANKS = (None, float("nan"), np.nan, "", "None", "null", "nan", "refused", [], 3)


def drawn(_: int) -> bytes:
    raise AssertionError("noise was drawn")


@pytest.mark.parametrize("question", [studies.YES_NO, studies.ONE_OF, studies.NUMBER])
def test_blank_is_rejected_without_drawing_if_refusal_is_not_offered(question):
    study = Study(studies.document(question))
    mechanisms = mechanisms_of(study)
    for blank in BLANKS[:-1]:
        with pytest.raises(AnswerError):
            perturb_answers(study, mechanisms, {question["id"]: blank}, drawn)
    with raises(InputError, "core.no_refusal"):
        perturb_many(mechanisms[question["id"]], [None], drawn, refusals=True)


@pytest.mark.parametrize("question", [OFFERED, COLOUR])
def test_only_none_counts_as_refusal(question):
    study = Study(studies.document(question))
    mechanisms = mechanisms_of(study)
    for blank in BLANKS[1:]:
        with pytest.raises(AnswerError):
            perturb_answers(study, mechanisms, {question["id"]: blank}, drawn)
    with pytest.raises(AnswerError):
        perturb_answers(study, mechanisms, {}, drawn)
    assert perturb_answers(study, mechanisms, {question["id"]: None}).payloads[question["id"]]


def test_blank_in_column_is_refusal_only_on_request():
    mechanism = mechanism_for(Study(studies.document(OFFERED)).questions[0])
    masked = np.ma.masked_array([True, False], [False, True])
    for column in ([True, None], [True, float("nan")], np.asarray([True, None], object), masked):
        with raises(AnswerError, "core.row", "2: is missing. If it is a refusal, mark it"):
            perturb_many(mechanism, column, drawn)
        assert perturb_many(mechanism, column, refusals=True).shape == (2, 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("answers.csv", "ever\nyes\n\nno\n"),
        ("answers.csv", 'ever\nyes\n""\n'),
        ("answers.csv", "ever\nyes\nNA\n"),
        ("answers.ndjson", '{"ever": null}\n'),
    ],
)
def test_blank_in_file_is_refusal_only_on_request(tmp_path, name, text):
    answers, reports = tmp_path / name, tmp_path / "reports.ndjson"
    answers.write_text(text, encoding="utf-8")
    study = Study(studies.document(OFFERED))
    with raises(InputError, "core.blank", "ever"):
        perturb_file(study, str(answers), str(reports))
    assert not reports.exists()
    with pytest.raises(InputError):
        perturb_file(Study(studies.document(studies.YES_NO)), str(answers), str(reports), refusals=True)
    assert not reports.exists()
    assert perturb_file(study, str(answers), str(reports), refusals=True) == text.count("\n") - (
        ".csv" in name
    )


@pytest.mark.parametrize("end", ["\n", "\n\n\n", "\r\n\r\n"])
def test_trailing_empty_line_is_not_a_refusal(tmp_path, end):
    """Otherwise an additional line break at the end of a file would count as a person who refused."""
    study = Study(studies.document(OFFERED))
    for refusals in (False, True):
        answers, reports = tmp_path / f"{refusals}.csv", tmp_path / f"{refusals}.ndjson"
        answers.write_bytes(f"ever\nyes\nno\n{end}".encode())
        assert perturb_file(study, str(answers), str(reports), refusals=refusals) == 2


def test_empty_set_option_is_rejected_and_not_a_refusal(tmp_path, capsys, monkeypatch):
    study = Study(studies.document(OFFERED))
    monkeypatch.setattr("ldp_client.device.device.Device.fetch", lambda *_: study)
    command = [
        "answer",
        "--max-epsilon",
        "8",
        "http://127.0.0.1:9/v1/studies/survey",
        "--folder",
        str(tmp_path / "one"),
        "--yes",
    ]
    assert main([*command, "--set", "ever="]) != 0
    assert "--refuse" in capsys.readouterr().err
    assert main([*command, "--set", "ever=yes", "--refuse", "ever"]) != 0
    assert main([*command, "--refuse", "other"]) != 0
    assert "must be a question that offers refusal: ever" in capsys.readouterr().err


def test_label_named_none_is_not_a_refusal():
    labels = ["None", "null", "refused", "(refused)", "NA"]
    question = {**COLOUR, "choices": labels}
    mechanism = mechanism_for(Study(studies.document(question)).questions[0])
    assert [mechanism.quantise(label) for label in [*labels, None]] == list(range(6))


@pytest.mark.parametrize("name", ["randomized_response", "oue", "sue", "subset_selection", "olh", "hadamard"])
def test_refusal_is_encoded_like_an_additional_choice(name):
    """So it has the same distribution, epsilon and size as a choice, whatever the mechanism."""
    question = {**COLOUR, "mechanism": {"name": name, "epsilon": "1"}}
    refusing = mechanism_for(Study(studies.document(question)).questions[0])
    labels = [*question["choices"], "one more"]
    choosing = mechanism_for(
        Study(studies.document({**question, "choices": labels, "refusal": False})).questions[0]
    )
    assert refusing.privacy.epsilon == choosing.privacy.epsilon <= 1
    for answer, label in zip([*question["choices"], None], labels, strict=True):
        for seed in range(50):
            assert refusing.perturb(answer, Stream(seed)) == choosing.perturb(label, Stream(seed))


@pytest.mark.parametrize(
    ("code", "question", "more"),
    [
        ("study.refusal_with_memoized", {**studies.MEMOIZED, "refusal": True}, {}),
        ("study.refusal_needs_labels", {**COLOUR, "choices": {"count": 5}}, {}),
        ("study.invalid", {**studies.LINEAR, "refusal": True}, {}),
        (
            "study.refusal_with_paper",
            OFFERED,
            {
                "paper": {
                    "questions": [{"id": "ever", "instructions": "Roll.", "matrix": [["5/6", "1/6"]] * 2}]
                }
            },
        ),
    ],
)
def test_refusal_on_unsupported_question_is_rejected(code, question, more):
    with raises(StudyError, code, field="questions[0].refusal"):
        Study(json.loads(json.dumps(studies.document(question, **more))))


def test_misspelt_label_none_is_rejected_and_not_a_refusal(tmp_path):
    """“none” for “None” is a slip that would silently become a refusal."""
    question = {**studies.ONE_OF, "choices": ["None", "some"], "refusal": True}
    study = Study(studies.document(question))
    for said in ("none", "None "):
        answers = tmp_path / f"{said}.csv"
        answers.write_text(f"{question['id']}\nsome\n{said}\n", encoding="utf-8")
        with pytest.raises(InputError):
            perturb_file(study, str(answers), str(tmp_path / "reports.ndjson"), refusals=True)
