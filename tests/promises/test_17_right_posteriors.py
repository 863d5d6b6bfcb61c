"""Posteriors are right: a noise scale that is 3 % off moves them by more than a fit may be off.

tests/inference/test_golden_fits.py compares fits of every model with posteriors that NumPy computes from a
written-out density. Here each case has 40,000 reports, so that the same comparison finds the wrong scale.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from inference import Summary, fit
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from schemas import Study
from summaries import QuestionSummary
from tests import studies
from tests.inference.golden import choices, numbers
from tests.inference.golden.families import differences
from tests.inference.golden.reference import Target, solved
from tests.kit.modes import fit_without_derivatives
from tests.statistics import seeded

pytestmark = pytest.mark.programs

PEOPLE = 40_000
WRONG_SCALE = 1.03
RANDOM = np.random.default_rng(20261128)
JOBS = RANDOM.choice(choices.LABELS, PEOPLE, p=(0.15, 0.6, 0.25)).tolist()
# Of each case its question, what people answer, and the law of its shares or the truth of its number.
CASES: dict[str, tuple[dict[str, Any], list[Any], Any]] = {
    "bernoulli, randomized_response": (
        choices.BERNOULLI,
        (RANDOM.random(PEOPLE) < 0.3).tolist(),
        choices.SHARE,
    ),
    **{
        name: (choices.MULTINOMIALS[name], JOBS, choices.SHARES)
        for name in ("multinomial, randomized_response", "multinomial, oue")
    },
    **{
        name: (numbers.QUESTIONS[name][0], RANDOM.normal(5, 2, PEOPLE).tolist(), numbers.QUESTIONS[name][1])
        for name in ("normal, laplace", "normal, gaussian")
    },
    "exponential, laplace": (
        numbers.QUESTIONS["exponential, laplace"][0],
        RANDOM.exponential(1 / 0.3, PEOPLE).tolist(),
        numbers.QUESTIONS["exponential, laplace"][1],
    ),
}
FAST = ("bernoulli, randomized_response", "multinomial, oue")
NAMES = [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in CASES]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The approximation compiles no derivatives."""
    fit_without_derivatives(monkeypatch)


@cache
def fitted(name: str) -> tuple[list[bytes], dict[str, Any]]:
    """Payloads of a case, and the draws of the fit to them."""
    question, answers, _ = CASES[name]
    study = Study(studies.document(question))
    mechanism = mechanism_for(study.questions[0])
    payloads = perturb_many(mechanism, answers, seeded(name))
    part = {question["id"]: QuestionSummary.of(mechanism, payloads)}
    summary = Summary(study.id, study.version, study.digest, part)
    posterior = fit(study, summary, method="gaussian_approx")[question["id"]]
    return [bytes(payload) for payload in payloads], dict(posterior.draws)


def target_of(name: str, scale: float, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Target]:
    """The posterior under noise of that many times the stated scale."""
    question, _, law = CASES[name]
    if question["ask"] == "number":
        noise = {"laplace": stats.laplace(scale=scale), "gaussian": stats.norm(scale=scale)}
        monkeypatch.setattr(numbers, "NOISE", noise)
        return numbers.target_of(question, law)
    epsilon = float(question["mechanism"]["epsilon"]) / scale
    return choices.of_shares(studies.with_epsilon(question, f"{epsilon}"), law)


@pytest.mark.parametrize("name", NAMES)
def test_noise_scale_three_percent_off_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    payloads, draws = fitted(name)
    found = []
    for scale in (1.0, WRONG_SCALE):
        target = target_of(name, scale, monkeypatch)(SimpleNamespace(payloads=lambda _name: payloads))
        wanted = {quantity: one._asdict() for quantity, one in solved(target).quantities.items()}
        found.append(differences(draws, wanted))
    sound, wrong = found
    assert sound == []
    assert wrong
