"""A device with the real mechanisms: memoized answers cost once, and one question drawn costs the dearest."""

import pytest

from ldp_client import Device, mechanism_for
from ldp_client.documents.errors import AlreadyAnsweredError, BudgetError
from ldp_client.mechanisms.memoized import MemoizedResponse
from schemas import Report, Study
from summaries import check_report
from tests import studies
from tests.kit.errors import raises


def rounds(version):
    return Study(studies.document(studies.MEMOIZED, studies.MEMOIZED_BITS, version=version))


def device_in(folder, budget="4"):
    return Device(folder, budget, require_consent=False)


def bodies(device):
    return [queued.body for queued in device.ledger.queued()]


def test_memoized_questions_are_answered_in_every_version_for_one_price(tmp_path):
    device = device_in(tmp_path)
    for version in (1, 2, 3):
        device.answer(rounds(version), {"habit": "yes", "brand": "teacher"})
        assert device.epsilon_left == 0
    with pytest.raises(AlreadyAnsweredError):
        device.answer(rounds(3), {"habit": "yes", "brand": "teacher"})
    study = rounds(3)
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    (last,) = [one for one in map(Report.from_json, bodies(device)) if one.version == 3]
    check_report(study, mechanisms, last)


def test_a_later_true_answer_is_ignored(tmp_path, monkeypatch):
    """Without fresh noise the reports are the permanent answer: the same whatever is answered later."""
    monkeypatch.setattr(MemoizedResponse, "instantaneous", lambda _, state, __: state)
    device = device_in(tmp_path)
    for version in range(1, 9):
        study = Study(studies.document(studies.MEMOIZED, id="kept", version=version))
        device.answer(study, {"habit": version % 2 == 0})
    assert len({Report.from_json(body).payloads["habit"] for body in bodies(device)}) == 1


def in_version(version, question, *more, **fields):
    return Study(studies.document(question, *more, version=version, **fields))


def test_answered_question_is_not_asked_again_as_memoized(tmp_path):
    """Otherwise noise would be drawn twice and charged only the second time."""
    once = {**studies.MEMOIZED, "mechanism": studies.YES_NO["mechanism"]}
    device = device_in(tmp_path)
    device.answer(in_version(1, once), {"habit": "yes"})
    with raises(AlreadyAnsweredError, "device.answered", "habit"):
        device.answer(in_version(2, studies.MEMOIZED), {"habit": "yes"})
    assert (device.epsilon_left, len(bodies(device))) == (3, 1)


def test_a_memoized_question_that_was_never_drawn_is_asked_in_a_later_version(tmp_path):
    device, drawn = device_in(tmp_path), set()
    for version in range(1, 100):
        device.answer(
            in_version(version, studies.MEMOIZED, studies.MEMOIZED_BITS, sample_one_question=True),
            {"habit": "yes", "brand": "worker"},
        )
        drawn.update(*[Report.from_json(body).payloads for body in bodies(device)])
        assert device.epsilon_left == 4 - 2 * len(drawn)
        if len(drawn) == 2:
            break
    assert len(drawn) == 2


def test_the_question_drawn_is_charged_and_bodies_have_one_size(tmp_path):
    study = Study(studies.document(*studies.NEWER, studies.NUMBER, sample_one_question=True))
    answers = {**studies.NEWER_ANSWERS, "hours": 3}
    sizes, asked = set(), set()
    for number in range(40):
        device = device_in(tmp_path / str(number), "2")
        device.answer(study, answers)
        (body,) = bodies(device)
        (drawn,) = Report.from_json(body).payloads
        # A memoized question costs its own ε, which is 2; one that is asked once the largest of those, 1.
        assert device.epsilon_left == (0 if drawn in ("habit", "brand") else 1)
        sizes.add(len(body))
        asked.add(drawn)
    assert len(sizes) == 1
    assert len(asked) > 5
    with pytest.raises(BudgetError):
        device_in(tmp_path / "poor", "0.99").answer(study, answers)
