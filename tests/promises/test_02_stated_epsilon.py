"""The stated ε is never below the true one, in choices, numbers, records, consent texts and built studies.

The true ε comes from what the code sends: exact odds of enumerated payloads, and the greatest distance of
payloads without noise. A study is compiled nowhere yet: studies that `ask` builds are used instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import mpmath
import pytest

import ldpkit
from ldp_client import Device, describe, mechanism_for
from ldp_client.device import budget
from ldp_client.words import text
from ldpkit import ask
from ldpkit.dossier import dossier_of
from schemas import Study
from tests import studies
from tests.kit.collectors import Harness
from tests.ldp_client.exact_laws import CHOICES
from tests.promises.true_epsilon import exact, true_epsilon

pytestmark = pytest.mark.usefixtures("few_hashes")
ANSWERS = studies.ANSWERS | studies.NEWER_ANSWERS
REFUSABLE = {**studies.NUMBER, "refusal": {"share": "0.3"}}
EPSILONS = ("0.1", "1", "3")


KINDS: dict[str, Mapping[str, Any]] = {
    **{name: {**studies.CHOICE, "choices": {"count": 3}, "mechanism": {"name": name}} for name in CHOICES},
    "yes or no": studies.YES_NO,
    "memoized response": studies.MEMOIZED,
    "memoized bits": studies.MEMOIZED_BITS,
    "laplace": studies.NUMBER,
    "gaussian": studies.NORMAL,
    "number that may be refused": REFUSABLE,
    "statistics": studies.LINEAR,
    "statistics of a yes or no": studies.LOGISTIC,
    "record": studies.RECORD,
    "record with a yes or no": studies.YES_NO_RECORD,
    "products": studies.PRODUCTS,
}


def at(name: str, epsilon: str) -> dict[str, Any]:
    asked = studies.with_epsilon(dict(KINDS[name]), epsilon)
    if name.startswith("memoized"):
        asked["mechanism"]["instantaneous_epsilon"] = "0.05"
    return asked


def problems(name: str, epsilon: str) -> list[str]:
    """Where a mechanism, or the study document that asks for it, states less than the payloads tell."""
    asked = at(name, epsilon)
    m = studies.mechanism_of(asked)
    with mpmath.workprec(200):
        true = true_epsilon(asked, m)
        stated = {"the mechanism": exact(m.privacy.epsilon), "the study": mpmath.mpf(epsilon)}
        return [
            f"{who} states {at_most}, true is {true}" for who, at_most in stated.items() if at_most < true
        ]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", KINDS)
def test_the_stated_epsilon_of_a_mechanism_holds(name: str, epsilon: str) -> None:
    assert problems(name, epsilon) == []


LESS = Fraction(999, 1000)


@pytest.mark.parametrize(("name", "module"), [("gaussian", "number"), ("record", "gaussian_record")])
def test_a_planted_grid_for_more_than_its_epsilon_is_found(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = import_module(f"ldp_client.mechanisms.{module}")
    radius = home.gaussian_radius
    monkeypatch.setattr(home, "gaussian_radius", lambda *given: radius(*given) * 1000 // 999)
    assert problems(name, "1")


ASKED = [at(name, "1.2345678") for name in ("yes or no", "laplace", "record", "products")]
STUDY = Study(studies.document(*ASKED))


@cache
def truths() -> list[Any]:
    """The true ε of each question of the study, from mechanisms that no test has touched."""
    with mpmath.workprec(200):
        return [true_epsilon(asked, studies.mechanism_of(asked)) for asked in ASKED]


def text_problems(folder: Path) -> list[str]:
    """Numbers below the true ones in consent texts, the pack for an ethics board, JSON and the web page."""
    epsilons, odds = truths(), [mpmath.exp(epsilon) for epsilon in truths()]
    said = "\n".join(describe(STUDY))
    (folder / "study.json").write_text(STUDY.to_json(), encoding="utf-8")
    table = dossier_of(STUDY).partition("| ε |")[2].splitlines()[2:6]
    rows = [row.split(" | ") for row in table]
    harness = Harness(f"sqlite:///{folder / 'collector.sqlite3'}")
    assert harness.publish(STUDY).status_code == 201
    page = harness.client.get("/s/survey").text
    numbers = {
        "consent text": (re.findall(r"true epsilon ([\d.]+)", said), epsilons),
        "consent text, odds": (re.findall(r"at most ([\d.]+) times", said), odds),
        "page, odds": (re.findall(r"at most ([\d.]+) times", page)[-4:], odds),
        "pack": ([row[1] for row in rows], epsilons),
        "pack, odds": ([row[3] for row in rows], odds),
    }
    assert {len(found) for found, _ in numbers.values()} == {4}
    return [
        f"{where}: {number} is below {true}"
        for where, (found, trues) in numbers.items()
        for number, true in zip(found, trues)
        if mpmath.mpf(number) < true
    ]


def test_the_epsilon_of_texts_holds(tmp_path: Path) -> None:
    assert text_problems(tmp_path) == []


@pytest.mark.parametrize("home", ["ldp_client.explain", "ldpkit.dossier"])
def test_a_planted_text_that_states_0999_of_epsilon_is_found(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounded_up = text.rounded_up
    monkeypatch.setattr(f"{home}.rounded_up", lambda value, *digits: rounded_up(0.999 * value, *digits))
    assert text_problems(tmp_path)


def study_problems(folder: Path, version: int) -> list[str]:
    """A study's ε, and what a device pays for it, against the sum of what its questions tell."""
    study = Study(studies.document(*ASKED, version=version))
    device = Device(folder, "50", require_consent=False)
    device.answer(study, {name: ANSWERS[name] for name in ("ever", "hours", "wage", "salary")})
    stated = {"the study": exact(study.epsilon), "the device": exact(50 - device.epsilon_left)}
    return [f"{who}: {at_most}" for who, at_most in stated.items() if at_most < sum(truths())]


@pytest.mark.parametrize(("version", "planted"), [(1, "nothing"), (2, "epsilon"), (3, "cost")])
def test_the_epsilon_of_a_study_holds_and_0999_of_it_is_found(
    version: int, planted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if planted == "epsilon":
        whole = Study.epsilon.fget
        monkeypatch.setattr(Study, "epsilon", property(lambda study: whole(study) * LESS))
    elif planted == "cost":
        cost_of = budget._cost

        def less(*given: Any) -> budget.Privacy:
            cost = cost_of(*given)
            return cost._replace(epsilon=LESS * cost.epsilon)

        monkeypatch.setattr(budget, "_cost", less)
    assert bool(study_problems(tmp_path, version)) == (planted != "nothing")


def built_problems() -> list[str]:
    """Where reports of a study that is built in Python tell more than its author allows."""
    asked = [
        ask.yes_no("ever", epsilon=1.2345678),
        ask.choice("colour", ["red", "green", "blue"], epsilon="1.2345678"),
        ask.number("hours", low=0, high=12, epsilon=1.2345678),
    ]
    built = ldpkit.study("survey", "A survey", asked)
    trues = [
        true_epsilon(each, mechanism_for(one))
        for each, one in zip(built.document["questions"], built.questions)
    ]
    return [f"{true}" for true in trues if true > mpmath.mpf("1.2345678")]


def test_the_epsilon_of_a_built_study_holds_and_0999_of_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert built_problems() == []
    monkeypatch.setattr("ldpkit.stating.decimal_of", lambda value: f"{float(value) / 0.999:.9f}")
    assert len(built_problems()) == 3
