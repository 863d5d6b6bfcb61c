"""Means of clipped answers that need no law: their coverage, and the notes that state them."""

from __future__ import annotations

import numpy as np
import pytest

from inference import fit
from inference.design.simulation import exact_total, noisy_total
from inference.models import model_for
from inference.models.number import plain_mean
from ldp_client import mechanism_for
from schemas import Study
from summaries import QuestionSummary
from tests import studies
from tests.kit.reporting import reduced, summary_of
from tests.kit.secure_sum import ADDRESSES
from tests.statistics import share_is

BOUNDS = ["0", "50"]
SUMMED = {"name": "summed_gaussian", "epsilon": "1", "delta": "1e-6"}
SUM = {"ask": "number", "bounds": BOUNDS, "mechanism": SUMMED, "model": {"name": "normal"}}
LOCAL = {**studies.NUMBER, "bounds": BOUNDS, "model": {"name": "normal"}}


def drinks(random, n):
    """Four in ten are zero."""
    return np.clip(np.where(random.random(n) < 0.4, 0, random.gamma(1.5, 8, n)), 0, 50)


def summed(question, answers, random):
    mechanism = mechanism_for(question)
    n = len(answers["a"]) if isinstance(answers, dict) else len(answers)
    return QuestionSummary(n, noisy_total(exact_total(question, mechanism, answers, True), n, random))


def sum_study(question, n):
    protocol = {"name": "secure_sum", "nodes": ADDRESSES, "devices": n, "max_faulty": 0}
    head = {"format": "ldpkit.study/1", "id": "summed", "version": 1, "title": "A sum"}
    return Study({**head, "protocol": protocol, "questions": [{"id": "x", **question}]})


@pytest.mark.attack(18)
@pytest.mark.slow
def test_fit_of_two_sums_notes_untested_normal_distribution():
    """Fit a normal law to two sums, which cannot show that four in ten answers are zero."""
    study, random = sum_study(SUM, 4000), np.random.default_rng(1)
    answers = drinks(random, 4000)
    summary = summary_of(study, {"x": summed(study.questions[0], answers, random)})
    found = fit(study, summary, method="gaussian_approx")["x"]
    assert float(np.median(found.draws["mean"])) < 0.5 * answers.mean()
    (note,) = [note for note in found.notes if "cannot show whether answers follow" in note]
    assert "`cells`" in note
    assert f"mean {answers.mean():.2g}" in note


def test_fit_of_record_sums_notes_untested_normal_distribution():
    fields = [{"id": "a", "bounds": BOUNDS}]
    record = {"ask": "record", "features": fields, "response": {"id": "b", "bounds": BOUNDS}}
    study = sum_study(
        {
            **record,
            "mechanism": {**SUMMED, "statistic": "marginals", "share": "0.2"},
            "model": {"name": "marginals"},
        },
        4000,
    )
    (question,) = study.questions
    random = np.random.default_rng(1)
    answers = {"a": drinks(random, 4000), "b": random.normal(25, 5, 4000)}
    model = model_for(question, summed(question, answers, random))
    (note,) = model.notes
    assert "a: mean 6." in note
    assert "b: mean 24." in note


def test_interval_of_mean_of_local_reports_has_stated_coverage():
    (question,) = Study(studies.document(LOCAL)).questions
    inside = 0
    for seed in range(300):
        part = reduced(question, drinks(np.random.default_rng(seed), 1000))
        inside += holds(plain_mean(question, mechanism_for(question), part))
    assert share_is(inside, 300, 0.9)


TRUE_MEAN = float(drinks(np.random.default_rng(0), 2_000_000).mean())


def holds(plain):
    return abs(plain.mean - TRUE_MEAN) < 1.645 * plain.error


@pytest.mark.attack(18)
@pytest.mark.slow
@pytest.mark.parametrize("crowded", [True, False])
def test_normal_fit_largely_below_zero_notes_the_plain_mean(crowded):
    """Fit a normal law to spending of which 60 % is zero, so that its mean is below zero."""
    study, random = Study(studies.document(LOCAL)), np.random.default_rng(2)
    zeros = random.random(10_000) < 0.6
    answers = np.where(zeros, 0, random.exponential(12, 10_000)) if crowded else random.normal(25, 6, 10_000)
    (question,) = study.questions
    summary = summary_of(study, {question.id: reduced(question, np.clip(answers, 0, 50))})
    found = fit(study, summary, method="gaussian_approx")[question.id]
    notes = [reason for reason in found.verdict.reasons if "beyond the bounds" in reason]
    assert len(notes) == crowded
    assert all("whatever their law, mean 4" in note or "mean 5" in note for note in notes)
