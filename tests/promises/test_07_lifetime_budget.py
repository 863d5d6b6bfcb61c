"""The lifetime budget holds over studies, versions and collectors.

The test counts what a device's reports reveal, in exact fractions and without the device's own books. Each
answer to a number costs its epsilon, and so does each permanent answer that differs from those before.
"""

from contextlib import suppress
from fractions import Fraction

import pytest

from ldp_client import Device
from ldp_client.device import budget as budget_module
from ldp_client.documents.errors import EXIT_REFUSED, BudgetError
from ldpkit.cli import main
from schemas import Report, Study
from tests import studies
from tests.ldp_client.devices import cheap_study

COLLECTORS = ("https://a.example", "https://b.example")
ANSWERS = {"hours": 3, "ever": True}


def asking(collector, question, epsilon, text, **fields):
    """A study of one question, which each collector asks in words of its own."""
    stated = {**studies.with_epsilon(question, epsilon), "text": f"{text} {collector}"}
    return collector, Study(studies.document(stated, **fields))


def number(name, collector, epsilon):
    return asking(collector, studies.NUMBER, epsilon, name, id=name)


def life():
    """Studies and versions at two collectors, which ask for more than 3.3."""
    rounds = [
        asking(collector, studies.YES_NO, "0.4", text, id="rounds", version=version)
        for version, text in enumerate(("Ever?", "Ever?", "Never?", "Never?"), 1)
        for collector in COLLECTORS
    ]
    numbers = [
        number(f"study-{index}", collector, epsilon)
        for index, epsilon in enumerate(("0.1", "0.7", "0.3", "0.4", "0.2", "0.1"))
        for collector in COLLECTORS
    ]
    return rounds[:4] + numbers[:6] + rounds[4:] + numbers[6:] + [number("last", COLLECTORS[0], "0.1")]


# Ten floats 0.1 sum up to a float just below 1; ten tenths are more than this decimal.
LIVES = {
    "3.3": life(),
    "0.9999999999999999": [number(f"tenth-{index}", COLLECTORS[index % 2], "0.1") for index in range(10)],
}


def revealed(device, steps):
    """What all reports of the device together cost."""
    by_digest = {study.digest: study for _, study in steps}
    costs = {}
    for queued in device.ledger.queued():
        report = Report.from_json(queued.body)
        question = by_digest[report.digest].questions[0]
        payload = report.payloads[question.id]
        # Of a permanent answer each report has the same first nine bytes.
        drawn = payload[:9] if question.ask == "yes_no" else report.id
        costs[queued.origin, drawn] = question.mechanism.epsilon
    return sum(costs.values(), Fraction(0))


def check_life(folder, budget):
    """A device, opened anew for each study, reveals no more than its budget, and knows what is left."""
    refused = 0
    for collector, study in LIVES[budget]:
        device = Device(folder, budget, collector)
        device.consent(study)
        try:
            device.answer(study, {question.id: ANSWERS[question.id] for question in study.questions})
        except BudgetError:
            refused += 1
        spent = revealed(device, LIVES[budget])
        assert spent <= Fraction(budget)
        assert device.epsilon_left == Fraction(budget) - spent
    assert 0 < refused < len(LIVES[budget])


@pytest.mark.usefixtures("memoized")
@pytest.mark.parametrize("budget", LIVES)
def test_the_budget_of_a_life_holds(tmp_path, budget):
    check_life(tmp_path, budget)


@pytest.mark.usefixtures("memoized")
def test_a_planted_round_that_forgets_earlier_costs_is_found(tmp_path, monkeypatch):
    write = budget_module.write_spends

    def forgetting(connection, *arguments):
        write(connection, *arguments)
        connection.execute("UPDATE spent SET epsilon = '0' WHERE version > 1")

    monkeypatch.setattr(budget_module, "write_spends", forgetting)
    with pytest.raises(AssertionError):
        check_life(tmp_path, "3.3")


def test_one_collector_cannot_use_up_the_whole_budget(tmp_path):
    left = []
    for index, collector in enumerate(
        ("https://a.example/one", "https://a.example/two", "https://b.example")
    ):
        device = Device(tmp_path, "8", collector, max_epsilon_per_collector="1", require_consent=False)
        with suppress(BudgetError):
            device.answer(Study(studies.document(studies.YES_NO, id=f"study-{index}")), {"ever": True})
        left.append(device.epsilon_left)
    assert left == [7, 7, 6]


def test_larger_budget_applies_only_with_explicit_option(tmp_path, server):
    folder, codes = tmp_path / "device", []
    for index, budget in enumerate((["1"], [], ["2.5"], ["2.5", "--raise-budget"], [])):
        study = Study(studies.document(studies.YES_NO, id=f"study-{index}"))
        server.content = study.canonical()
        more = ["--max-epsilon", *budget] if budget else []
        url = f"{server.url}/v1/studies/{study.id}"
        codes.append(main(["answer", url, "--set", "ever=yes", "--yes", "--folder", str(folder), *more]))
    assert codes == [0, EXIT_REFUSED, EXIT_REFUSED, 0, EXIT_REFUSED]
    device = Device(folder, "9", require_consent=False)
    with pytest.raises(BudgetError):
        device.answer(Study(studies.document(studies.YES_NO)), {"ever": True})
    device.answer(cheap_study("cheap"), {"ever": True})
    assert device.epsilon_left == Fraction("0.499")
