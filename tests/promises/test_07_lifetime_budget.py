"""The lifetime budget holds over studies, versions and collectors.

The test counts what a device's reports reveal, in exact fractions and without the device's own books. Each
answer to a number costs its epsilon, and so does each permanent answer that differs from those before.
"""

from __future__ import annotations

import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ldp_client import Device
from ldp_client.device import budget as budget_module
from ldp_client.device.ledger import Ledger
from ldp_client.documents.errors import EXIT_REFUSED, BudgetError
from ldpkit.cli import main
from schemas import Report, Study
from tests import studies
from tests.ldp_client.devices import Server
from tests.promises.watched_ledger import Patch

COLLECTORS = ("https://a.example", "https://b.example")
BUDGET = "3.3"
# Ten floats 0.1 sum up to this float; ten tenths are more than this decimal.
JUST_BELOW_ONE = "0.9999999999999999"
ANSWERS = {"hours": 3, "ever": True}
Step = tuple[str, Study]


def number(name: str, collector: str, epsilon: str) -> Step:
    """A study of one number, which is asked in words of its own."""
    question = {**studies.with_epsilon(studies.NUMBER, epsilon), "text": f"{name} for {collector}"}
    return collector, Study(studies.document(question, id=name))


def round_of(version: int, collector: str, text: str) -> Step:
    """A round of a study whose answer is memoized, in these words."""
    question = {**studies.with_epsilon(studies.YES_NO, "0.4"), "text": f"{text} for {collector}"}
    return collector, Study(studies.document(question, id="rounds", version=version))


def life() -> list[Step]:
    """Studies and versions at two collectors, which ask for more than the budget."""
    rounds = [
        round_of(version, collector, text)
        for version, text in ((1, "Ever?"), (2, "Ever?"), (3, "Never?"), (4, "Never?"))
        for collector in COLLECTORS
    ]
    numbers = [
        number(f"study-{index}", collector, epsilon)
        for index, epsilon in enumerate(("0.1", "0.7", "0.3", "0.4", "0.2", "0.1"))
        for collector in COLLECTORS
    ]
    return rounds[:4] + numbers[:6] + rounds[4:] + numbers[6:] + [number("last", COLLECTORS[0], "0.1")]


def tenths() -> list[Step]:
    """Ten studies that cost a tenth each."""
    return [number(f"tenth-{index}", COLLECTORS[index % 2], "0.1") for index in range(10)]


def revealed(device: Device, steps: list[Step]) -> Fraction:
    """What all reports of the device together cost."""
    by_digest = {study.digest: study for _, study in steps}
    costs: dict[tuple[str, object], Fraction] = {}
    for queued in device.ledger.queued():
        report = Report.from_json(queued.body)
        question = by_digest[report.digest].questions[0]
        payload = report.payloads[question.id]
        # Of a permanent answer each report has the same first nine bytes.
        drawn = payload[:9] if question.ask == "yes_no" else report.id
        costs[queued.origin, drawn] = question.mechanism.epsilon
    return sum(costs.values(), Fraction(0))


def problems(folder: Path, budget: str, steps: list[Step]) -> list[str]:
    """Where a device, opened anew for each study, reveals more than its budget, or tells another rest."""
    refused, wrong = 0, []
    for collector, study in steps:
        device = Device(folder, budget, collector)
        device.consent(study)
        try:
            device.answer(study, {question.id: ANSWERS[question.id] for question in study.questions})
        except BudgetError:
            refused += 1
        spent = revealed(device, steps)
        wrong += [f"{study} at {collector}: {spent} of {budget}"] if spent > Fraction(budget) else []
        wrong += [f"{study}: a wrong rest"] if device.epsilon_left != Fraction(budget) - spent else []
    assert 0 < refused < len(steps) or wrong
    return wrong


@pytest.mark.usefixtures("memoized")
def test_the_budget_of_a_life_holds(tmp_path: Path) -> None:
    assert not problems(tmp_path, BUDGET, life())


def test_the_budget_holds_to_the_last_digit(tmp_path: Path) -> None:
    assert not problems(tmp_path, JUST_BELOW_ONE, tenths())


@pytest.mark.usefixtures("memoized")
def test_a_planted_round_that_forgets_earlier_costs_is_found(tmp_path: Path, monkeypatch: Patch) -> None:
    write = budget_module.write_spends

    def forgetting(connection: sqlite3.Connection, *arguments: Any) -> None:
        write(connection, *arguments)
        connection.execute("UPDATE spent SET epsilon = '0' WHERE version > 1")

    monkeypatch.setattr(budget_module, "write_spends", forgetting)
    assert any(f" of {BUDGET}" in problem for problem in problems(tmp_path, BUDGET, life()))


def test_one_collector_cannot_use_up_the_whole_budget(tmp_path: Path) -> None:
    for index, collector in enumerate(
        ("https://a.example/one", "https://a.example/two", "https://b.example")
    ):
        device = Device(tmp_path, "8", collector, max_epsilon_per_collector="1", require_consent=False)
        study = Study(studies.document(studies.YES_NO, id=f"study-{index}"))
        if index == 1:
            with pytest.raises(BudgetError, match="the limit for one collector"):
                device.answer(study, {"ever": True})
        else:
            device.answer(study, {"ever": True})


def silent_raises(folder: Path, server: Server, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """How a call of the command got more than the budget that is kept, without being told to raise it."""
    codes, lines = [], []
    raised = ("2.5", "--raise-budget")
    for index, budget in enumerate((("1",), (), ("2.5",), raised, ())):
        study = Study(studies.document(studies.YES_NO, id=f"study-{index}"))
        server.content = study.canonical()
        more = ["--max-epsilon", *budget] if budget else []
        url = f"{server.url}/v1/studies/{study.id}"
        codes.append(main(["answer", url, "--set", "ever=yes", "--yes", "--folder", str(folder), *more]))
        lines.append(capsys.readouterr().err)
    assert main(["budget", "--folder", str(folder)]) == 0
    kept = capsys.readouterr().out.splitlines()[-1].removeprefix("its lifetime budget: ")
    expected = [0, EXIT_REFUSED, EXIT_REFUSED, 0, EXIT_REFUSED]
    wrong = [] if codes == expected else [f"the calls ended with {codes}"]
    wrong += [] if "is 1, and 2.5 is more" in lines[2] else ["a larger budget is refused without a word"]
    return wrong if kept == "2.5" else [*wrong, f"{kept} is kept"]


def test_larger_budget_applies_only_with_explicit_option(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not silent_raises(tmp_path / "device", server, capsys)


def raised_by_opening(folder: Path) -> list[str]:
    """What a device that is opened with a larger budget answers beyond the one that is kept."""
    wrong = []
    for index, (budget, more) in enumerate((("1", {}), ("9", {}), ("9", {"raise_budget": True}))):
        device = Device(folder, budget, **more)
        study = Study(studies.document(studies.YES_NO, id=f"study-{index}"))
        device.consent(study)
        try:
            device.answer(study, {"ever": True})
        except BudgetError:
            wrong += [] if index == 1 else [f"{budget} is not taken with {more}"]
        else:
            wrong += [f"{budget} is taken in silence"] if index == 1 else []
    return wrong


def test_a_device_that_is_opened_with_a_larger_budget_holds_to_the_kept_one(tmp_path: Path) -> None:
    assert not raised_by_opening(tmp_path)


def keep_any(ledger: Ledger, stated: str, _is_raised: bool = False) -> str:
    """Whatever is stated is kept."""
    with ledger.writing() as connection:
        connection.execute("INSERT OR REPLACE INTO budget VALUES (1, ?)", (stated,))
    return stated


def test_a_planted_silent_raise_is_found(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: Patch
) -> None:
    monkeypatch.setattr(Ledger, "keep_budget", keep_any)
    assert raised_by_opening(tmp_path / "app")
    monkeypatch.setattr("ldpkit.cli.answering._kept_budget", lambda _folder: None)
    assert silent_raises(tmp_path / "device", server, capsys)
