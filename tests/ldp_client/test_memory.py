"""Repeated collection: one permanent answer, one report a version, charged once; and one question of many."""

import random

import pytest

from ldp_client import answering, mechanisms
from ldp_client.device import budget
from ldp_client.documents.errors import AlreadyAnsweredError, BudgetError, RefusedError
from ldp_client.mechanisms import MECHANISMS
from schemas import Report, Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Memoized, Server, consenting

OTHER = studies.with_epsilon({**studies.ONE_OF, "id": "other"}, "2")


@pytest.fixture(autouse=True)
def memoized(monkeypatch):
    monkeypatch.setitem(MECHANISMS, "randomized_response", Memoized)
    monkeypatch.setattr(budget, "_terms", {})
    monkeypatch.setattr(mechanisms, "_built", {})


def wave(version, *questions, **fields):
    return Study(studies.document(*(questions or [studies.YES_NO]), version=version, **fields))


def payload(device, report_id, question="ever"):
    (queued,) = [item for item in device.ledger.queued() if item.report_id == report_id]
    return Report.from_json(queued.body).payloads[question]


def test_each_version_repeats_the_first_answer_and_is_charged_once(tmp_path):
    device = consenting(tmp_path, "1")
    first = payload(device, device.answer(wave(1), {"ever": True}))
    later = [payload(device, device.answer(wave(v), {"ever": False}))[:9] for v in (2, 5)]
    assert first[0] == 1
    assert later == [first[:9]] * 2
    assert device.epsilon_left == 0
    for version in (1, 4, 5):
        with pytest.raises(RefusedError):
            device.answer(wave(version), {"ever": False})
    assert len(device.ledger.queued()) == 3


def test_changed_prior_is_the_same_question_changed_noise_is_rejected(tmp_path):
    device = consenting(tmp_path, "4")
    first = payload(device, device.answer(wave(1), {"ever": True}))
    stated = {"name": "bernoulli", "prior": {"p": {"distribution": "beta", "a": "2", "b": "2"}}}
    same = wave(2, {**studies.YES_NO, "model": stated}, purpose="To know.", title="A survey")
    assert payload(device, device.answer(same, {"ever": False}))[:9] == first[:9]
    with raises(AlreadyAnsweredError, "device.other_noise"):
        device.answer(wave(3, studies.with_epsilon(studies.YES_NO, "2")), {"ever": True})
    assert device.epsilon_left == 3


def test_added_question_is_charged_when_added(tmp_path):
    device = consenting(tmp_path, "3")
    device.answer(wave(1), {"ever": True})
    device.answer(wave(2, studies.YES_NO, OTHER), {"ever": True, "other": "worker"})
    assert device.epsilon_left == 0
    device.answer(wave(3, studies.YES_NO, OTHER), {"ever": True, "other": "worker"})


def test_a_question_without_memory_is_still_answered_once(tmp_path):
    device = consenting(tmp_path, "4")
    device.answer(wave(1, studies.YES_NO, studies.NUMBER), {"ever": True, "hours": 1})
    with raises(AlreadyAnsweredError, "device.answered", "hours"):
        device.answer(wave(2, studies.YES_NO, studies.NUMBER), {"ever": True, "hours": 1})
    assert len(device.ledger.queued()) == 1


def test_withdrawal_wipes_the_permanent_answer_and_ends_the_rounds(tmp_path):
    with Server() as server:
        device = consenting(tmp_path, "1", server.url)
        nonce = payload(device, device.answer(wave(1), {"ever": True}))[:9]
        device.answer(wave(2), {"ever": True})
        device.flush()
        device.withdraw("survey")
        assert device.flush().deleted == 2
    assert nonce not in (tmp_path / "ledger.sqlite3").read_bytes()
    with raises(AlreadyAnsweredError, "device.withdrawn"):
        device.answer(wave(3), {"ever": True})
    assert device.epsilon_left == 0


@pytest.fixture
def drawing(monkeypatch):
    """Devices draw the first question of this list, whatever they would have drawn."""
    drawn = []
    monkeypatch.setattr(answering, "uniform_below", lambda *_: ["ever", "other"].index(drawn[0]))
    return drawn


def sample_one_question(version):
    return wave(version, studies.YES_NO, OTHER, sample_one_question=True)


def test_one_question_of_many_costs_its_own_epsilon_and_the_draw_is_not_repeated(tmp_path, drawing):
    answers = {"ever": True, "other": "worker"}
    drawing[:] = ["ever"]
    device = consenting(tmp_path, "2")
    device.answer(sample_one_question(1), answers)
    assert device.epsilon_left == 1
    drawing[:] = ["other"]
    with pytest.raises(AlreadyAnsweredError):
        device.answer(sample_one_question(1), answers)
    with pytest.raises(BudgetError):
        device.answer(sample_one_question(2), answers)
    consenting(tmp_path, "4", raise_budget=True).answer(sample_one_question(2), answers)
    drawing[:] = random.Random(1).sample(["ever", "other"], 1)
    consenting(tmp_path, "4", raise_budget=True).answer(sample_one_question(3), answers)
