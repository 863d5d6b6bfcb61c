"""Which form of its likelihood each mechanism's reports take, and that each puts its mass on the truth."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density

from inference import fit
from inference.models import model_for
from inference.models.from_reports import SmallSamples
from ldp_client import mechanism_for
from schemas import Report, Study
from summaries import QuestionSummary, summarize
from summaries.reductions import REDUCTIONS
from tests import studies
from tests.inference.simulation import at_shares
from tests.kit import reporting
from tests.statistics import seeded


def study_of(name: str, choices: int, epsilon: str = "4") -> Study:
    mechanism = {"name": name, "epsilon": epsilon}
    if name == "memoized":
        mechanism |= {"of": "sue", "instantaneous_epsilon": "3"}
    return Study(studies.document({**studies.CHOICE, "choices": {"count": choices}, "mechanism": mechanism}))


def reports_of(study: Study, answers):
    question = study.questions[0]
    if question.mechanism.name == "memoized":  # of devices that report once
        mechanism, random = mechanism_for(question), seeded(study.digest, answers)
        payloads = [mechanism.randomise(int(a), random) for a in answers]
        return [
            Report(f"{i:032x}", study.id, study.version, study.digest, {question.id: payload})
            for i, payload in enumerate(payloads)
        ]
    return reporting.reports_of(study, answers.tolist())


def joint(model, shares) -> float:
    with jax.enable_x64(True):
        return float(log_density(model.program, (), dict(model.data), at_shares(jnp.asarray(shares)))[0])


def test_normal_form_has_a_note() -> None:
    def notes(name: str, choices: int, rows=None) -> str:
        study = study_of(name, choices)
        mechanism = mechanism_for(study.questions[0])
        size = REDUCTIONS[name].size(mechanism)
        summary = QuestionSummary(0, np.zeros(size, dtype=np.int64), rows)
        return " ".join(model_for(study.questions[0], summary).notes)

    assert "likelihood" not in notes("hadamard", 40)
    assert "likelihood" not in notes("oue", 12)
    assert "the likelihood is normal" in notes("oue", 13)
    assert "likelihood" not in notes("oue", 13, np.zeros((3, 2), dtype=np.uint8))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["oue", "subset_selection", "memoized"])
def test_rows_and_patterns_give_the_same_posterior(name: str, monkeypatch) -> None:
    """Up to a constant: the exact form of the reports against the exact form of their patterns."""
    monkeypatch.setattr("inference.models.from_reports.keeps_patterns", lambda _: False)
    study = study_of(name, 9)
    reports = reports_of(study, np.arange(200) % 9)
    few = SmallSamples(study)
    list(few.watch(reports))
    summary = summarize(study, reports).questions["occupation"]
    exact, patterns = (
        model_for(study.questions[0], part) for part in (few.beside("occupation", summary), summary)
    )
    shares = np.random.default_rng(0).dirichlet(np.ones(9), 4)
    gaps = [joint(exact, p) - joint(patterns, p) for p in shares]
    assert np.ptp(gaps) < 1e-6


@pytest.mark.slow
def test_reports_modelled_one_by_one_are_checked_for_misfit() -> None:
    """Honest reports of 400 people fit; 400 reports of the same set do not."""
    study = study_of("subset_selection", 16)
    reports = reports_of(study, np.arange(400) % 16)
    found = fit(study, reports, seed=2)["occupation"]
    assert not any("the likelihood is normal" in note for note in found.notes)
    assert found.predictive is not None
    assert found.predictive.observed == pytest.approx(
        summarize(study, reports).questions["occupation"].values / 400
    )
    assert not found.predictive.misfit
    some = reports[0].payloads
    same = [Report(one.id, one.study, one.version, one.digest, some) for one in reports]
    assert fit(study, same, seed=2)["occupation"].predictive.misfit
