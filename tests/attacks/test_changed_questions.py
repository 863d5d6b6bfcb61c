"""A new version asks something else under the old id, so that an old permanent answer is reused for it."""

import pytest

from ldp_client.documents.errors import AlreadyAnsweredError, BudgetError
from schemas import Report, Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import consenting

SMOKES = {**studies.MEMOIZED, "text": "Do you smoke?"}
OPIATES = {**studies.MEMOIZED, "text": "Do you take opiates?"}
BRANDS = {**studies.MEMOIZED_BITS, "text": "Which?", "mechanism": studies.KEPT}
OTHERS = {**BRANDS, "choices": ["teacher", "worker", "student"]}
SURE = {"epsilon": "16", "instantaneous_epsilon": "15.9"}


def version(number, question, **fields):
    return Study(studies.document(question, version=number, **fields))


def certain(question):
    """Noise so small that a report is its permanent answer, which is the true one."""
    return {**question, "mechanism": {**question["mechanism"], **SURE}}


def reported(device, study, answer):
    report_id = device.answer(study, {study.questions[0].id: answer})
    (queued,) = [item for item in device.ledger.queued() if item.report_id == report_id]
    return Report.from_json(queued.body).payloads[study.questions[0].id]


def test_changed_question_does_not_reuse_the_old_answer(tmp_path):
    device = consenting(tmp_path, "40")
    assert reported(device, version(1, certain(SMOKES)), "yes") == b"\x01"
    assert reported(device, version(2, certain(OPIATES)), "no") == b"\x00"
    # Each wording keeps its own answer from then on, and is paid for once.
    assert reported(device, version(3, certain(SMOKES)), "no") == b"\x01"
    assert reported(device, version(4, certain(OPIATES)), "yes") == b"\x00"
    assert device.epsilon_left == 8
    assert [float(spend.epsilon) for spend in device.ledger.spent()] == [32]


def test_question_without_text_is_identified_by_study_title(tmp_path):
    device = consenting(tmp_path, "60")
    bare = certain(studies.MEMOIZED)
    assert reported(device, version(1, bare, title="Smoking"), "yes") == b"\x01"
    assert reported(device, version(2, bare, title="Opiates"), "no") == b"\x00"
    assert reported(device, version(3, certain(SMOKES), title="Smoking"), "no") == b"\x00"


def test_question_without_text_is_identified_by_section_title(tmp_path):
    device = consenting(tmp_path, "40")
    bare = certain(studies.MEMOIZED)
    for number, (title, answer) in enumerate((("Smoking", "yes"), ("Opiates", "no")), start=1):
        sections = [{"title": title, "questions": ["habit"]}]
        sent = reported(device, version(number, bare, sections=sections), answer)
        assert sent == (b"\x01" if answer == "yes" else b"\x00")


def test_renamed_choices_make_a_new_question(tmp_path):
    device = consenting(tmp_path, "40")
    assert reported(device, version(1, certain(BRANDS)), "student") == b"\x00"
    assert reported(device, version(2, certain(OTHERS)), "student") == b"\x02"
    assert device.epsilon_left == 8


def test_changed_question_is_charged_to_the_budget(tmp_path):
    device = consenting(tmp_path, "3")
    device.answer(version(1, SMOKES), {"habit": "yes"})
    with pytest.raises(BudgetError):
        device.answer(version(2, OPIATES), {"habit": "no"})
    assert device.epsilon_left == 1
    device.answer(version(2, SMOKES), {"habit": "no"})


def test_withdrawn_question_cannot_be_asked_in_other_words(tmp_path):
    device = consenting(tmp_path, "8")
    device.answer(version(1, SMOKES), {"habit": "yes"})
    device.withdraw("survey")
    with raises(AlreadyAnsweredError, "device.withdrawn"):
        device.answer(version(2, OPIATES), {"habit": "no"})
