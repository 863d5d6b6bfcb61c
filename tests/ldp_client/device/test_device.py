"""A device: it checks, draws, charges and stores an answer at once, and never again."""

import math
from contextlib import contextmanager
from datetime import date, timedelta
from fractions import Fraction

import pytest

from ldp_client import Device
from ldp_client.device import outbox
from ldp_client.documents.errors import AlreadyAnsweredError, AnswerError, InputError, RefusedError
from schemas import Report, Study
from tests import studies
from tests.kit.errors import raises
from tests.kit.work import counted
from tests.ldp_client.devices import STUDY, YES, consenting


def sent(device):
    """The reports that wait, by version."""
    reports = [Report.from_json(queued.body) for queued in device.ledger.queued()]
    return {report.version: report for report in reports}


ASKED = Study(studies.document(studies.NUMBER, studies.YES_NO, studies.LINEAR))
GIVEN = {"hours": 3, "ever": True, "rating": studies.ANSWERS["rating"]}
NO_NUMBERS = [None, math.nan, -math.inf, "", True, "3"]


@pytest.mark.attack(19)
@pytest.mark.parametrize(
    ("answers", "field"),
    [
        ({"hours": 3}, "ever"),
        ({**GIVEN, "ever": "secret"}, "ever"),
        ({**GIVEN, "hours": "secret"}, "hours"),
        ({**GIVEN, "more": "secret"}, "more"),
        ([], "answers"),
        *[({**GIVEN, "hours": wrong}, "hours") for wrong in NO_NUMBERS],
        *[({**GIVEN, "rating": {**GIVEN["rating"], "years": wrong}}, "rating.years") for wrong in NO_NUMBERS],
        *[({**GIVEN, "rating": {**GIVEN["rating"], "rate": wrong}}, "rating.rate") for wrong in NO_NUMBERS],
    ],
)
def test_bad_answer_spends_no_budget_and_is_not_repeated(tmp_path, answers, field):
    """Answer with a number that is missing, infinite or no number."""
    device = consenting(tmp_path, "4")
    with pytest.raises(AnswerError) as caught:
        device.answer(ASKED, answers)
    assert caught.value.field == field
    assert "secret" not in str(caught.value)
    assert device.ledger.spent() == device.ledger.queued() == []


@pytest.mark.attack(13)
def test_true_answer_is_not_stored(tmp_path):
    """Someone reads the true answer in the device's files."""
    consenting(tmp_path, "4").answer(Study(studies.document(studies.CHOICE)), {"occupation": "teacher"})
    for path in tmp_path.iterdir():
        assert b"teacher" not in path.read_bytes()


@pytest.mark.parametrize("slip", [None, STUDY.document, STUDY.to_json()])
def test_object_that_is_not_a_study_is_rejected(tmp_path, slip):
    device = Device(tmp_path, "4")
    for ask in (device.accept, device.consent, lambda given: device.answer(given, YES)):
        with raises(InputError, "device.no_study"):
            ask(slip)
    for name in (slip, "typo"):
        with raises(InputError, "device.unknown_study"):
            device.withdraw(name)
        with raises(InputError, "device.unknown_study"):
            device.give_ticket(name, "code")


@pytest.mark.attack(16)
@pytest.mark.parametrize("how", ["consent", "answer", "accept"])
def test_translated_view_of_a_study_is_refused(tmp_path, how):
    """Give a device the view in one language: no collector has its digest, so the report would be lost."""
    asked = {**studies.YES_NO, "text": {"en": "Ever?", "de": "Je?"}}
    study = Study(studies.document(asked, languages=["en", "de"]))
    device = consenting(tmp_path, "8")
    with raises(InputError, "device.only_shown"):
        getattr(device, how)(study.shown_in("de"), *([YES] if how == "answer" else []))
    device.answer(study, YES)


TODAY = date(2026, 6, 15)


@pytest.mark.parametrize(
    ("days", "code"), [(-2, "device.opens"), (-1, ""), (0, ""), (1, ""), (2, "device.closed")]
)
def test_a_study_outside_its_days_costs_nothing(tmp_path, monkeypatch, days, code):
    """West of the study's author, the first day comes later."""
    closes = (TODAY + timedelta(1)).isoformat()
    study = Study(studies.document(studies.YES_NO, opens=TODAY.isoformat(), closes=closes))
    monkeypatch.setattr(outbox, "today", lambda: TODAY + timedelta(days))
    device = consenting(tmp_path, "4")
    if code:
        with raises(RefusedError, code):
            device.answer(study, YES)
    else:
        device.answer(study, YES)
    assert device.epsilon_left == (4 if code else 3)


def test_withdrawn_answer_stays_charged_and_is_not_asked_again(tmp_path):
    """A consent alone can be withdrawn too."""
    device = Device(tmp_path, "4")
    device.consent(STUDY)
    assert device.withdraw(STUDY.id) == 0
    device.consent(STUDY)
    device.answer(STUDY, YES)
    device.withdraw(STUDY.id)
    assert device.epsilon_left == 3
    with raises(RefusedError, "device.no_consent"):
        device.answer(STUDY, YES)
    device.consent(STUDY)
    with pytest.raises(AlreadyAnsweredError):
        device.answer(STUDY, YES)


def rounds(version, **fields):
    return Study(studies.document(studies.MEMOIZED, studies.MEMOIZED_BITS, version=version, **fields))


def test_added_question_is_charged_when_it_is_added(tmp_path):
    device, habit = consenting(tmp_path, "5"), Study(studies.document(studies.MEMOIZED))
    device.answer(habit, {"habit": "yes"})
    assert device.epsilon_left == 3
    for version in (2, 3):
        device.answer(rounds(version), {"habit": "yes", "brand": "teacher"})
        assert device.epsilon_left == 1
    once = Study(studies.document(studies.MEMOIZED, studies.YES_NO, version=4))
    device.answer(once, {"habit": "yes", "ever": "yes"})
    with raises(AlreadyAnsweredError, "device.answered", "ever"):
        device.answer(Study({**once.document, "version": 5}), {"habit": "yes", "ever": "yes"})


def test_memoized_question_with_other_words_is_the_same_and_with_other_noise_is_refused(tmp_path):
    device = consenting(tmp_path, "8")
    device.answer(Study(studies.document(studies.MEMOIZED)), {"habit": "yes"})
    reworded = {**studies.MEMOIZED, "text": "And today?"}
    device.answer(Study(studies.document(reworded, version=2, title="Again")), {"habit": "yes"})
    assert device.epsilon_left == 6
    with raises(AlreadyAnsweredError, "device.other_noise"):
        other = studies.with_epsilon(studies.MEMOIZED, "3")
        device.answer(Study(studies.document(other, version=3)), {"habit": "yes"})


def test_permanent_answer_that_was_withdrawn_is_not_drawn_again(tmp_path):
    device = consenting(tmp_path, "4")
    device.answer(rounds(1), {"habit": "yes", "brand": "teacher"})
    device.withdraw("survey")
    with device.ledger.reading() as connection:
        assert connection.execute("SELECT answer FROM permanent").fetchall() == [(b"",)] * 2
    with raises(AlreadyAnsweredError, "device.withdrawn"):
        device.answer(rounds(2), {"habit": "yes", "brand": "teacher"})


@pytest.mark.attack(7)
def test_answered_question_is_not_asked_again_as_memoized(tmp_path):
    """A later version memoizes a question, so that noise would be drawn twice and charged once."""
    once = {**studies.MEMOIZED, "mechanism": studies.YES_NO["mechanism"]}
    device = consenting(tmp_path, "4")
    device.answer(Study(studies.document(once)), {"habit": "yes"})
    with raises(AlreadyAnsweredError, "device.answered", "habit"):
        device.answer(Study(studies.document(studies.MEMOIZED, version=2)), {"habit": "yes"})
    assert (device.epsilon_left, len(device.ledger.queued())) == (3, 1)


def test_each_memoized_question_is_charged_in_the_version_that_draws_it(tmp_path):
    device, drawn = consenting(tmp_path, "4"), set()
    for version in range(1, 9):
        device.answer(rounds(version, sample_one_question=True), {"habit": "yes", "brand": "worker"})
        drawn.update(sent(device)[version].payloads)
        assert device.epsilon_left == 4 - 2 * len(drawn)
    assert len(drawn) == 2


def test_the_question_drawn_is_charged(tmp_path):
    """A memoized question costs its own epsilon, which is 2; any other the largest of those, which is 1."""
    asked = (studies.MEMOIZED, studies.CHOICE, studies.RECORD, studies.NUMBER)
    study = Study(studies.document(*asked, sample_one_question=True))
    answers = {**studies.NEWER_ANSWERS, **studies.ANSWERS}
    answers = {question["id"]: answers[question["id"]] for question in asked}
    seen = set()
    for number in range(10):
        device = consenting(tmp_path / str(number), "3")
        device.answer(study, answers)
        (drawn,) = sent(device)[1].payloads
        assert device.epsilon_left == (1 if drawn == "habit" else 2)
        seen.add(drawn)
    assert len(seen) > 2


@pytest.mark.attack(8)
def test_later_version_cannot_make_a_private_question_public(tmp_path):
    """A later version asks a noisy question as a public field, and the app passes its value."""
    device = consenting(tmp_path, "8")
    device.answer(Study(studies.document(studies.MEMOIZED, studies.YES_NO)), {"habit": "yes", "ever": "yes"})
    left = device.epsilon_left
    turned = {"id": "ever", "choices": ["no", "yes"]}
    later = Study(studies.document(studies.MEMOIZED, public=[turned], version=2))
    with raises(RefusedError, "device.asked_behind_noise"):
        device.answer(later, {"habit": "yes"}, public={"ever": "yes"})
    assert device.epsilon_left == left == Fraction(5)


@pytest.mark.attack(8)
def test_public_values_are_given_as_public_only(tmp_path):
    """A study is replaced, so that a gateway's unchanged answers would leave in clear."""
    gateway = consenting(tmp_path, "2")
    study = Study(studies.document(studies.MEMOIZED, public=[{"id": "region", "choices": ["north", "none"]}]))
    with raises(RefusedError, "device.clear_unnamed", "region"):
        gateway.answer(study, {"habit": "yes", "region": "north"})
    assert not gateway.ledger.spent()
    with raises(AnswerError, "core.answers", field="public"):
        gateway.answer(study, {"habit": "yes"}, public="yes")


@pytest.mark.attack(15)
def test_many_languages_neither_slow_a_device_nor_hold_its_ledger(tmp_path):
    """Publish thousands of labels in many languages: devices would be busy for minutes, ledgers locked."""
    tags = [first + second for first in "abcd" for second in "abcde"]
    labels = [f"{place:04}-{'x' * 80}" for place in range(500)]
    asked = {**studies.MEMOIZED, "ask": "choice", "choices": labels, "model": {"name": "multinomial"}}
    asked["text"] = {tag: f"In {tag}" for tag in tags}
    document, locked = studies.document(asked, languages=tags), []

    @contextmanager
    def counting():
        before = calls()
        with writing() as connection:
            yield connection
        locked.append(calls() - before)

    with counted() as calls:
        study = Study(document)
        device = consenting(tmp_path, "100")
        device.accept(study)
        writing, device.ledger.writing = device.ledger.writing, counting
        device.answer(study, {"habit": labels[3]})
    # Each label in each language is read some twenty times.
    assert calls() < 60 * len(labels) * len(tags)
    assert len(locked) == 1
    assert locked[0] < 10 * len(labels)


@pytest.mark.attack(4)
def test_moved_clock_does_not_change_answers(tmp_path, monkeypatch):
    """A person moves the clock to answer again."""
    study = Study(studies.document(studies.YES_NO, opens=TODAY.isoformat(), closes=TODAY.isoformat()))
    bodies = set()
    for days in (0, -4000, 4000, 0):
        monkeypatch.setattr(outbox, "today", lambda days=days: TODAY + timedelta(days))
        monkeypatch.setattr("time.time", lambda days=days: 1.8e9 + 86_400 * days)
        device = consenting(tmp_path, "4")
        if bodies:
            with pytest.raises(RefusedError):
                device.answer(study, {"ever": False})
        else:
            device.answer(study, {"ever": True})
        bodies |= {queued.body for queued in device.ledger.queued()}
        assert (len(device.ledger.spent()), len(bodies)) == (1, 1)
