"""A wrong, unmixed or uninformative fit is never called usable; a sound one is.

Fits are made by the Gaussian approximation, which compiles little. What the sampler returns is spoilt where a
case is about chains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from inference import fit, summarize
from inference.results.diagnostics import Diagnostics
from inference.sampling import gaussian_approximation
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from schemas import Report, Study
from tests import studies
from tests.statistics import seeded

pytestmark = pytest.mark.programs

Patch = pytest.MonkeyPatch
Values = NDArray[np.float64]
JOBS = ("student", "worker", "teacher")


@dataclass(frozen=True)
class Case:
    """A question and what people answer; kept: which of their reports arrive."""

    question: dict[str, Any]
    answers: Callable[[np.random.Generator], Any]
    kept: Callable[[Report], bool] = lambda _report: True
    slow: bool = False


def yes(share: float, people: int, epsilon: str = "1", **prior: Any) -> Case:
    model = {"name": "bernoulli", **({"prior": {"p": prior}} if prior else {})}
    question = {**studies.with_epsilon(studies.YES_NO, epsilon), "model": model}
    return Case(question, lambda random: random.random(people) < share)


def number(law: str, answers: Callable[[np.random.Generator], Any]) -> Case:
    asked = {"normal": studies.AGE, "exponential": studies.NUMBER}[law]
    return Case(studies.with_epsilon(asked, "4"), answers, slow=True)


def jobs(mechanism: str, *shares: float) -> Case:
    question = {**studies.CHOICE, "mechanism": {"name": mechanism, "epsilon": "1"}}
    return Case(question, lambda random: random.choice(JOBS, 3000, p=shares))


def two_peaks(random: np.random.Generator) -> Values:
    return np.concatenate([random.normal(19, 1, 4000), random.normal(41, 1, 4000)])


BAD = {
    "30 reports that noise drowns": yes(0.3, 30, "0.1"),
    "reports that no answers can give": replace(
        yes(1, 600), kept=lambda report: report.payloads["ever"][0] == 1
    ),
    "a prior that rules the truth out": yes(0.6, 3000, distribution="uniform", low="0", high="0.1"),
    "a prior far from the truth": yes(0.6, 20_000, distribution="beta", a="500", b="4500"),
    "two peaks under a normal law": number("normal", two_peaks),
    "even answers under an exponential law": number(
        "exponential", lambda random: random.uniform(6, 12, 8000)
    ),
}
GOOD = {
    "a yes or no": yes(0.3, 3000),
    "a rare yes": yes(0.02, 20_000),
    "a yes or no under much noise": yes(0.3, 20_000, "0.2"),
    "choices by unary encoding": jobs("oue", 0.15, 0.6, 0.25),
    "choices by randomized response": jobs("randomized_response", 0.15, 0.6, 0.25),
    "a normal number": number("normal", lambda random: random.normal(30, 5, 4000)),
    "an exponential number": number("exponential", lambda random: random.exponential(3, 4000)),
}


def rows(cases: dict[str, Case]) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.slow] * case.slow) for name, case in cases.items()]


@cache
def summary_of(name: str) -> tuple[Study, Any]:
    """The study of a case, and the summary of its reports."""
    case = {**BAD, **GOOD}[name]
    study = Study(studies.document(case.question))
    question = study.questions[0]
    mechanisms, source = {question.id: mechanism_for(question)}, seeded(name)
    answers = np.asarray(case.answers(np.random.default_rng(18))).tolist()
    reports = (perturb_answers(study, mechanisms, {question.id: answer}, source) for answer in answers)
    return study, summarize(study, [report for report in reports if case.kept(report)])


def is_usable(name: str) -> bool:
    """Whether the fit of a case is called usable."""
    study, summary = summary_of(name)
    (posterior,) = fit(study, summary, method="laplace", false_reports=0).values()
    return posterior.diagnostics.ok


@pytest.mark.parametrize("name", rows(BAD))
def test_a_bad_fit_is_not_called_usable(name: str) -> None:
    assert not is_usable(name)


@pytest.mark.parametrize("name", rows(GOOD))
def test_a_sound_fit_is_called_usable(name: str) -> None:
    assert is_usable(name)


def spoil(monkeypatch: Patch, change: Callable[[Values], Values]) -> None:
    """Have the sampler return chains whose first site is changed."""
    draw = gaussian_approximation.draw

    def spoilt(*arguments: Any, **options: Any) -> Any:
        sampled = draw(*arguments, **options)
        site = next(iter(sampled.sites))
        sites = {**sampled.sites, site: change(np.array(sampled.sites[site]))}
        return replace(sampled, sites=sites, mixing=None, chained=True)

    monkeypatch.setattr(gaussian_approximation, "draw", spoilt)


def stuck_chain(draws: Values) -> Values:
    draws[0] = draws[0, :1]
    return draws


def stuck_everywhere(draws: Values) -> Values:
    draws[:] = draws[0, 0]
    return draws


def chain_apart(draws: Values) -> Values:
    draws[0] = draws[0] * 0.8
    return draws


def slow_walk(draws: Values) -> Values:
    return np.sort(draws, axis=1)


def not_a_number(draws: Values) -> Values:
    draws[0, 0] = np.nan
    return draws


@pytest.mark.parametrize("change", [stuck_chain, stuck_everywhere, chain_apart, slow_walk, not_a_number])
def test_chains_that_did_not_mix_are_not_called_usable(change: Any, monkeypatch: Patch) -> None:
    spoil(monkeypatch, change)
    assert not is_usable("a yes or no")


def test_sound_chains_are_called_usable(monkeypatch: Patch) -> None:
    spoil(monkeypatch, lambda draws: draws)
    assert is_usable("a yes or no")


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("reports that no answers can give", "with_model"),
        ("a prior that rules the truth out", "with_model"),
    ],
)
def test_a_planted_verdict_that_ignores_the_model_is_found(name: str, step: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(Diagnostics, step, lambda self, *_given: self)
    assert is_usable(name)
