"""Regressions from perturbed records: through the real mechanism, from reports and from files."""

from __future__ import annotations

import numpy as np

from inference.models import family_of
from inference.models.base import Truth
from inference.models.regression import Scale
from inference.models.replicates import records
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Study
from summaries.reductions.records import record_rows
from tests import studies

STRONG = {"name": "gaussian_record", "epsilon": "40", "delta": "1e-5", "response_share": "0.25"}
LOGISTIC = {**studies.YES_NO_RECORD, "mechanism": STRONG}


def test_replicated_records_match_device_reports():
    """Counts in cells of perturbed features and told responses, from devices and from the model's own law."""
    (question,) = Study(studies.document(LOGISTIC)).questions
    mechanism = mechanism_for(question)
    random = np.random.default_rng(6)
    sites = {
        "intercept": np.asarray(0.3),
        "coefficients": np.asarray([0.8, -0.5]),
        "feature_mean": np.asarray([0.1, -0.1]),
        "feature_sd": np.asarray([0.2, 0.25]),
        "feature_correlation": np.linalg.cholesky([[1, 0.5], [0.5, 1]]),
    }
    own = {name: float(value) for name, value in Scale(question).parameters(sites).items()}
    answers = family_of(question).simulate(question, Truth(own, sites), 40_000, random)
    sent = perturb_many(mechanism, answers, NotForRealAnswers(random.bytes))
    found = records(mechanism, np.column_stack(record_rows(mechanism, sent)))
    drawn = found.draw(sites, random)
    away = (found.observed - drawn) / np.sqrt(found.observed + drawn + 1)
    assert np.abs(away).max() < 6
    wrong = found.draw({**sites, "intercept": np.asarray(-0.3)}, random)
    assert np.abs((found.observed - wrong) / np.sqrt(found.observed + wrong + 1)).max() > 6
