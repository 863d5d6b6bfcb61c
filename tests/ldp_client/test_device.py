import multiprocessing
import os
import sqlite3
from datetime import date, timedelta
from fractions import Fraction

import pytest

from ldp_client.answering import perturb_answers
from ldp_client.device.budget import terms_of
from ldp_client.device.layout import LEDGER_NAME, LOCK_NAME
from ldp_client.device.verdicts import why_not_over
from ldp_client.documents.errors import (
    AlreadyAnsweredError,
    AnswerError,
    BudgetError,
    InputError,
    LedgerError,
    RefusedError,
)
from schemas import Report, Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import PAIR, PAIR_ANSWERS, consenting, race

STUDY = Study(studies.document())


def test_answer_stores_spend_and_report_together(tmp_path):
    device = consenting(tmp_path, "7")
    report_id = device.answer(STUDY, studies.ANSWERS)
    (queued,) = device.ledger.queued()
    report = Report.from_json(queued.body)
    assert (queued.report_id, report.id, report.digest) == (report_id, report_id, STUDY.digest)
    assert set(report.payloads) == {question.id for question in STUDY.questions}
    assert [spend.question for spend in device.ledger.spent()] == sorted(report.payloads)
    assert device.epsilon_left == 0


@pytest.mark.parametrize("name", [LEDGER_NAME, LOCK_NAME])
def test_link_in_place_of_the_ledger_is_refused(tmp_path, name):
    """The file that it leads to keeps its mode and its bytes."""
    other, folder = tmp_path / "others", tmp_path / "device"
    other.write_text("others")
    other.chmod(0o644)
    folder.mkdir()
    (folder / name).symlink_to(other)
    with raises(LedgerError, "device.ledger_link", name):
        consenting(folder, "4")
    assert (other.read_text(), other.stat().st_mode & 0o777) == ("others", 0o644)


def test_question_is_answered_once_across_restarts_and_versions(tmp_path):
    device = consenting(tmp_path, "100")
    device.answer(PAIR, PAIR_ANSWERS)
    body = device.ledger.queued()[0].body
    later = Study(studies.document(studies.NUMBER, version=2))
    for again in (device, consenting(tmp_path, "100")):
        with raises(AlreadyAnsweredError, "device.answered", "hours"):
            again.answer(PAIR, PAIR_ANSWERS)
        with raises(AlreadyAnsweredError, "device.answered", "hours"):
            again.answer(later, {"hours": 3})
    assert [queued.body for queued in device.ledger.queued()] == [body]
    assert device.epsilon_left == 98


def test_budget_is_exact_and_lasts_for_life(tmp_path):
    tenths = [studies.with_epsilon({**studies.NUMBER, "id": f"q{i}"}, "0.1") for i in range(3)]
    device = consenting(tmp_path, "0.3")
    for i, question in enumerate(tenths):
        device.answer(Study(studies.document(question, id=f"s{i}")), {f"q{i}": 1})
    assert device.epsilon_left == 0
    with raises(BudgetError, "device.costs", "0", "this device's budget"):
        device.answer(Study(studies.document(studies.with_epsilon(studies.AGE, "0.001"))), {"age": 30})
    assert len(device.ledger.queued()) == 3
    assert consenting(tmp_path, "0.5", raise_budget=True).epsilon_left == Fraction(1, 5)


@pytest.mark.parametrize(
    ("answers", "field"),
    [
        ({"hours": 3}, "ever"),
        ({"hours": 3, "ever": "secret"}, "ever"),
        ({"hours": "secret", "ever": True}, "hours"),
        ({"hours": 3, "ever": True, "more": "secret"}, "more"),
        ({}, "hours"),
    ],
)
def test_bad_answer_spends_no_budget_and_is_not_repeated(tmp_path, answers, field):
    device = consenting(tmp_path, "4")
    with pytest.raises(AnswerError) as caught:
        device.answer(PAIR, answers)
    assert caught.value.field == field
    assert "secret" not in str(caught.value)
    assert device.ledger.spent() == device.ledger.queued() == []


def test_no_noise_is_drawn_for_a_bad_answer():
    """The good answer is first: all answers are checked before any noise is drawn."""

    def never(_size):
        raise AssertionError("noise was drawn")

    study = Study(studies.document(studies.NUMBER, studies.CHOICE))
    for wrong in ("poet", None, 1, float("nan"), ["worker"]):
        with raises(AnswerError, "core.one_of_choices", field="occupation"):
            perturb_answers(study, terms_of(study).mechanisms, {"hours": 3, "occupation": wrong}, never)


@pytest.mark.parametrize("value", [1e300, -1e300, 10**400])
def test_a_number_far_beyond_its_bounds_is_reported_like_any_other(tmp_path, value):
    sizes = set()
    for name, answer in (("odd", value), ("plain", 3)):
        device = consenting(tmp_path / name, "4")
        device.answer(Study(studies.document(studies.NUMBER)), {"hours": answer})
        sizes.add(len(device.ledger.queued()[0].body))
    assert len(sizes) == 1


@pytest.mark.parametrize("offset", [-2, 2])
def test_a_study_outside_its_days_is_refused(tmp_path, offset):
    day = (date.today() + timedelta(days=offset)).isoformat()
    window = {"opens": day} if offset > 0 else {"closes": day}
    with raises(RefusedError, "device.opens" if offset > 0 else "device.closed", day):
        consenting(tmp_path, "4").answer(Study(studies.document(studies.NUMBER, **window)), {"hours": 1})


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "", "1,5", 4])
def test_a_bad_budget_is_refused(tmp_path, budget):
    code = "device.above_zero" if budget in ("0", "-1") else "device.decimal"
    with raises(InputError, code, "max_epsilon"):
        consenting(tmp_path, budget)


def test_a_list_of_no_keys_is_refused(tmp_path):
    """A list from an empty folder used to pin no key and accept unsigned studies."""
    with raises(InputError, "device.no_keys"):
        consenting(tmp_path, "4", "https://collector.example", signing_keys=[])


@pytest.mark.parametrize("url", ["example.com", "localhost:8000", "ftp://host", "https://"])
def test_a_collector_that_is_no_url_is_refused(tmp_path, url):
    with raises(InputError, "device.collector_url"):
        consenting(tmp_path, "4", url)


def test_flush_needs_a_collector(tmp_path):
    with raises(InputError, "device.no_collector"):
        consenting(tmp_path, "4").flush()


@pytest.mark.parametrize("damage", ["garbage", "layout", "folder", "truncated"])
def test_a_ledger_that_cannot_be_read_refuses_to_answer(tmp_path, damage):
    folder = tmp_path / "device"
    device = consenting(folder, "4")
    device.answer(PAIR, PAIR_ANSWERS)
    file = folder / "ledger.sqlite3"
    if damage == "garbage":
        file.write_bytes(os.urandom(8192))
    elif damage == "truncated":
        file.write_bytes(file.read_bytes()[:5000])
    elif damage == "layout":
        with sqlite3.connect(file) as connection:
            connection.execute("PRAGMA user_version = 99")
        connection.close()
    else:
        folder = file
    with pytest.raises(LedgerError):
        consenting(folder, "4").answer(PAIR, PAIR_ANSWERS)


def test_true_answer_is_not_stored(tmp_path):
    answers = {"occupation": "teacher"}
    consenting(tmp_path, "4").answer(Study(studies.document(studies.CHOICE)), answers)
    for path in tmp_path.iterdir():
        assert b"teacher" not in path.read_bytes()


@pytest.mark.slow
def test_racing_processes_answer_once(tmp_path):
    outcomes = race(multiprocessing.get_context("spawn"), tmp_path, 8)
    assert outcomes == ["answered"] + ["refused"] * 7
    assert len(consenting(tmp_path, "4").ledger.queued()) == 1


@pytest.mark.parametrize("slip", [None, 7, b"code"])
def test_callers_mistake_is_not_reported_as_a_ledger_error(tmp_path, slip):
    device = consenting(tmp_path, "4")
    with raises(InputError, "device.text"):
        device.answer(PAIR, PAIR_ANSWERS, invitation=slip)
    device.answer(PAIR, PAIR_ANSWERS)
    for name, invitation in ((PAIR.id, slip), (slip, "code"), ("typo", "code")):
        with pytest.raises(InputError):
            device.invite(name, invitation)
    for name in (slip, PAIR, "typo"):
        with raises(InputError, "device.unknown_study"):
            device.withdraw(name)
    assert len(device.ledger.queued()) == 1


def test_a_consent_alone_can_be_withdrawn(tmp_path):
    device = consenting(tmp_path, "4")
    device.consent(PAIR)
    assert device.withdraw(PAIR.id) == 0


def test_clock_on_the_last_day_of_the_calendar_damages_nothing(tmp_path, monkeypatch):
    """A board without a battery may have any date."""

    class LastDay(date):
        @classmethod
        def today(cls):
            return date.max

    monkeypatch.setattr("ldp_client.device.device.date", LastDay)
    days = {"opens": "0001-01-01", "closes": "9999-12-31"}
    device = consenting(tmp_path, "4", "http://127.0.0.1:9")
    device.answer(Study(studies.document(studies.YES_NO, **days)), {"ever": True})
    assert why_not_over(days["closes"], "")
    with raises(RefusedError, "device.closed"):
        device.answer(Study(studies.document(studies.YES_NO, id="past", closes="9999-12-30")), {"ever": True})
