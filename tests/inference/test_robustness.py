"""Whole posteriors of odd summaries: wide and finite, never NaN, and never too narrow."""

from __future__ import annotations

import numpy as np
import pytest

from inference.design.simulated_posteriors import posterior_draws
from inference.models import model_for
from inference.sampling import sample_prior
from ldp_client import mechanism_for
from schemas import Study
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS
from tests import studies

ONE_FEATURE = {**studies.LINEAR, "features": studies.FEATURES[:1]}


def question_of(template, epsilon):
    return Study(studies.document(studies.with_epsilon(template, epsilon))).questions[0]


def size_of(question):
    mechanism = mechanism_for(question)
    return REDUCTIONS[mechanism.name].size(mechanism)


def one_cell(question, place, n):
    values = np.zeros(size_of(question), dtype=np.int64)
    values[place] = n
    return QuestionSummary(n, values)


def fitted(question, summaries):
    """Draws {parameter: (summaries, draws)} and the sd of the prior's, {parameter: sd}."""
    built = [model_for(question, summary) for summary in summaries]
    prior = built[0].parameters(sample_prior(built[0], seed=1))
    draws = posterior_draws(built, seed=1, draws=300)
    assert all(np.isfinite(found).all() for found in draws.values())
    return draws, {name: found.std() for name, found in prior.items()}


@pytest.mark.slow
def test_uninformative_choice_reports_leave_the_prior():
    question = question_of(studies.CHOICE, "0.05")
    # Patterns 0 and 7: no bit of any report is set, or every bit, so that shares come out below zero.
    cases = [(0, 0), (0, 1), (7, 1), (0, 2000), (7, 2000)]
    draws, prior_sd = fitted(question, [one_cell(question, *case) for case in cases])
    for name, found in draws.items():
        assert found.min() >= 0
        # Such reports say nothing of one choice against another, however many they are.
        assert found.std(axis=1) == pytest.approx([prior_sd[name]] * 5, rel=0.5)


@pytest.mark.slow
def test_impossible_statistics_leave_wide_posteriors():
    question = question_of(ONE_FEATURE, "0.05")
    size = size_of(question)
    # The noise of one report has an sd of about 10⁶; the last two are 30 sds out.
    odd = [(0, 0), (1, 10**6), (1, -(10**6)), (1000, -(10**9)), (1000, 10**9)]
    draws, prior_sd = fitted(question, [QuestionSummary(n, np.full(size, value)) for n, value in odd])
    for few in range(3):
        assert draws["coefficient[age]"][few].std() > 0.5 * prior_sd["coefficient[age]"]
