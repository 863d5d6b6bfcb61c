"""Models of a number: calibrated, under both noises, in their own units, and sound where data are odd.

Calibration is simulation-based: truths are drawn evenly from a grid of parameters, answers pass through the
real mechanisms, and the posterior on the grid is exact. Its 90 % sets must hold the truth in 90 % of studies.
"""

from __future__ import annotations

import numpy as np
import pytest

from inference.models import model_for
from inference.sampling import sample
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldp_client.documents.errors import InputError
from schemas import Study
from summaries import QuestionSummary, Summary
from summaries.reductions import REDUCTIONS
from tests import studies
from tests.inference.simulation import seeded
from tests.kit.errors import raises

LAPLACE = {"name": "laplace", "epsilon": "4"}


def question_of(model, mechanism, bounds=("0", "12")):
    asked = {**studies.NUMBER, "bounds": list(bounds), "mechanism": mechanism, "model": {"name": model}}
    return Study(studies.document(asked)).questions[0]


def reduced(question, answers):
    """The summary's values of answers that devices perturb."""
    mechanism = mechanism_for(question)
    return REDUCTIONS[mechanism.name].reduce(
        mechanism, perturb_many(mechanism, np.asarray(answers, float), seeded(answers))
    )


@pytest.mark.slow
def test_bounds_below_zero_are_fitted_and_too_wide_rejected():
    """A law on positive numbers is fitted with negative bounds; one on whole numbers needs near bounds."""
    question = question_of("gamma", LAPLACE, ("-6", "6"))
    mechanism = mechanism_for(question)
    answers = np.random.default_rng(2).gamma(3.0, 1.0, 20_000)
    model = model_for(question, QuestionSummary(20_000, reduced(question, answers)))
    assert mechanism.levels == 4 << 20
    drawn = model.parameters(sample(model, seed=1, kept=200).sites)
    assert drawn["mean"].mean() == pytest.approx(3.0, abs=5 * drawn["mean"].std())
    assert drawn["mean"].std() < 0.2
    wide = question_of("poisson", LAPLACE, ("0", "1000000"))
    with raises(InputError, "fit.bounds_too_wide", "16384"):
        model_for(wide, Summary.empty(Study(studies.document())).questions["hours"])
