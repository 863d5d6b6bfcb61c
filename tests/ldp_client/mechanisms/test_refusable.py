"""A refusal is one more answer, which the noise hides; a blank is no refusal unless that is stated."""

import numpy as np
import pytest

from ldp_client.answering import perturb_answers
from ldp_client.bulk import perturb_many
from ldp_client.documents.errors import AnswerError, InputError, StudyError
from ldp_client.mechanisms import mechanisms_of
from ldpkit.perturbing import perturb_file
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.statistics import Stream, no_noise

OFFERED = {**studies.YES_NO, "refusal": True}
COLOUR = {**studies.ONE_OF, "refusal": True}


@pytest.mark.parametrize("question", [studies.YES_NO, studies.ONE_OF, studies.NUMBER, OFFERED, COLOUR])
def test_only_none_refuses_and_only_where_refusal_is_offered(question):
    study, name = Study(studies.document(question)), question["id"]
    mechanisms = mechanisms_of(study)
    blanks = [float("nan"), "", "None", "null", "refused", []]
    for answers in ({}, *[{name: blank} for blank in blanks]):
        with pytest.raises(AnswerError):
            perturb_answers(study, mechanisms, answers, no_noise)
    if not question.get("refusal"):
        with pytest.raises(AnswerError):
            perturb_answers(study, mechanisms, {name: None}, no_noise)
        with raises(InputError, "core.no_refusal"):
            perturb_many(mechanisms[name], [None], no_noise, refusals=True)
        return
    assert perturb_answers(study, mechanisms, {name: None}).payloads[name]
    answer = studies.ANSWERS[name]
    masked = np.ma.masked_array([answer, answer], [False, True])
    for column in ([answer, None], [answer, float("nan")], np.asarray([answer, None], object), masked):
        with raises(AnswerError, "core.row", "2: is missing. Remove the row, or mark a refusal"):
            perturb_many(mechanisms[name], column, no_noise)
        assert perturb_many(mechanisms[name], column, refusals=True).shape == (2, 1)


@pytest.mark.attack(19)
@pytest.mark.parametrize(
    ("text", "people"),
    [
        # An empty line at the end is no person, and one between people is.
        ("ever\nyes\n\nno\n\n\n", 3),
        ('ever\nyes\n""\n', 2),
        ("ever\nyes\nNA\n", 2),
    ],
)
def test_blank_in_file_is_refusal_only_on_request(tmp_path, text, people):
    """Have blanks, which may be slips, count as refusals that nobody gave."""
    answers, reports = tmp_path / "answers.csv", tmp_path / "reports.ndjson"
    answers.write_text(text, encoding="utf-8")
    study = Study(studies.document(OFFERED))
    with raises(InputError, "answer.line_invalid", "ever"):
        perturb_file(study, str(answers), str(reports))
    with pytest.raises(InputError):
        perturb_file(Study(studies.document(studies.YES_NO)), str(answers), str(reports), refusals=True)
    assert not reports.exists()
    assert perturb_file(study, str(answers), str(reports), refusals=True) == people


def test_label_named_none_is_not_a_refusal():
    labels = ["None", "null", "refused", "(refused)", "NA"]
    m = studies.mechanism_of(COLOUR, choices=labels)
    assert [m.quantise(label) for label in [*labels, None]] == list(range(6))
    with pytest.raises(AnswerError):
        m.quantise("none")


@pytest.mark.attack(2)
@pytest.mark.parametrize("name", ["randomized_response", "oue", "sue", "subset_selection", "olh", "hadamard"])
def test_refusal_is_encoded_like_one_more_choice(name):
    """Recognise who refused by a report: its distribution, ε and size are those of a choice."""
    question = {**COLOUR, "mechanism": {"name": name, "epsilon": "1"}}
    labels = [*question["choices"], "one more"]
    refusing = studies.mechanism_of(question)
    choosing = studies.mechanism_of({**question, "choices": labels, "refusal": False})
    assert refusing.privacy.epsilon == choosing.privacy.epsilon <= 1
    for answer, label in zip([*question["choices"], None], labels, strict=True):
        for seed in range(10):
            assert refusing.perturb(answer, Stream(seed)) == choosing.perturb(label, Stream(seed))


def test_refusal_on_unsupported_question_is_rejected():
    numbered = {**COLOUR, "choices": {"count": 5}}
    for question, code in (
        (studies.MEMOIZED, "study.refusal_invalid"),
        (numbered, "study.refusal_invalid"),
        (studies.LINEAR, "study.invalid"),
    ):
        with raises(StudyError, code, field="questions[0].refusal"):
            Study(studies.document({**question, "refusal": True}))
