"""What answers cost, and the limits that they keep."""

from fractions import Fraction

import pytest

from ldp_client.device import budget
from ldp_client.documents.errors import BudgetError
from ldp_client.mechanisms import mechanism_for
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import STUDY, YES, consenting


def refuses(device, study, answers, error, code):
    with raises(error, code):
        device.answer(study, answers)
    assert device.ledger.spent() == device.ledger.queued() == []


def test_budget_is_exact_and_lasts_for_life(tmp_path):
    tenths = [studies.with_epsilon({**studies.NUMBER, "id": f"q{i}"}, "0.1") for i in range(3)]
    device = consenting(tmp_path, "0.3")
    for i, question in enumerate(tenths):
        device.answer(Study(studies.document(question, id=f"s{i}")), {f"q{i}": 1})
    assert device.epsilon_left == 0
    with raises(BudgetError, "device.costs", "0"):
        device.answer(Study(studies.document(studies.with_epsilon(studies.AGE, "0.001"))), {"age": 30})
    assert len(device.ledger.queued()) == 3
    assert consenting(tmp_path, "0.5", raise_budget=True).epsilon_left == Fraction(1, 5)


def test_a_study_above_its_own_cap_is_refused(tmp_path):
    device = consenting(tmp_path, "4", max_epsilon_per_study="1.5")
    pair = Study(studies.document(studies.YES_NO, studies.NUMBER))
    refuses(device, pair, {**YES, "hours": 1}, BudgetError, ("device.costs", "epsilon 2", "1.5"))
    device.answer(STUDY, YES)
    grown = Study(studies.document(studies.NUMBER, version=2))
    with raises(BudgetError, "device.costs", "0.5"):
        device.answer(grown, {"hours": 1})
    device.answer(Study(studies.document(studies.NUMBER, id="second")), {"hours": 1})


def test_delta_is_a_budget_too(tmp_path):
    loose = {**studies.LINEAR, "mechanism": {**studies.GAUSSIAN, "delta": "0.5"}}
    answers = {"rating": studies.ANSWERS["rating"]}
    code = ("device.costs", "delta 0.5")
    refuses(consenting(tmp_path, "4"), Study(studies.document(loose)), answers, BudgetError, code)
    device = consenting(tmp_path, "4", max_delta="1e-6")
    device.answer(Study(studies.document(studies.LINEAR)), answers)
    with raises(BudgetError, "device.costs", "delta 1e-06"):
        device.answer(Study(studies.document(studies.LINEAR, id="second")), answers)


@pytest.mark.attack(2)
def test_cost_of_the_integers_is_charged_if_above_the_stated(tmp_path, monkeypatch):
    """A mechanism draws with integers that cost more than its study states."""
    dear = mechanism_for(Study(studies.document(studies.with_epsilon(studies.YES_NO, "3"))).questions[0])
    monkeypatch.setattr(budget, "mechanisms_of", lambda _study: {"ever": dear})
    device = consenting(tmp_path, "4", max_epsilon_per_study="2")
    study = Study(studies.document(studies.YES_NO, title="Understated"))
    refuses(device, study, YES, BudgetError, ("device.costs", "epsilon 3", "2"))
