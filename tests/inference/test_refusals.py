"""The share of refusals and the law of those who answer: exact, and as wide as they must be."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from inference.models import model_for
from inference.sampling.space import as_arrays, reports_site
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Study
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS
from tests import studies
from tests.statistics import follows, share_is


def asked(question):
    return Study(studies.document(question)).questions[0]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [{"name": "laplace", "epsilon": "2"}, studies.NORMAL["mechanism"]])
def test_reports_of_numbers_follow_the_fitted_law(mechanism):
    """Device reports of people of whom 3 in 10 refuse; the law without refusals does not fit."""
    own = {"mechanism": mechanism, "model": {"name": "exponential"}, "refusal": {"share": "0.5"}}
    question = asked({**studies.NUMBER, **own})
    mechanism, random = mechanism_for(question), np.random.default_rng(3)
    answers = random.exponential(2.5, 100_000).astype(object)
    answers[random.random(len(answers)) < 0.3] = None
    payloads = perturb_many(mechanism, answers, NotForRealAnswers(random.bytes), refusals=True)
    summary = QuestionSummary(len(answers), REDUCTIONS[mechanism.name].reduce(mechanism, payloads))
    fitted = model_for(question, summary)
    with jax.enable_x64(True):
        sites = {"rate": 12 / 2.5}

        def cells(refused):
            site = reports_site(fitted, {**sites, "refused": refused}, as_arrays(fitted.data))
            return np.asarray(site["value"]), np.asarray(site["fn"].cell_probs)

        assert follows(*cells(0.3))
        assert not follows(*cells(0.01))
        counts, near = cells(0.3)
        # The coin's own law, whatever that of the numbers is.
        told = near.reshape(2, -1).sum(axis=1)
        assert told[1] == pytest.approx(0.3 * float(mechanism.p) + 0.7 * float(mechanism.q), abs=1e-6)
        assert share_is(int(counts.reshape(2, -1).sum(axis=1)[1]), int(counts.sum()), told[1])
