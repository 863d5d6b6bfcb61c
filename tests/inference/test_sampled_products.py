"""Linear regression from signs of sampled products: the exact law, the posterior, and errors."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import stats

from inference.likelihoods.common import CellCounts
from inference.likelihoods.regression.products import product_signs
from ldp_client import mechanism_for
from ldp_client.documents.errors import StudyError
from schemas import Study
from tests import studies

RECORDS = [(17.5, True, 1.0), (42.0, False, 5.0), (33.1, True, 2.1), (20.0, False, 4.9)]
SHARES = np.array([0.1, 0.2, 0.3, 0.4])


def study(**changes):
    return Study(studies.document({**studies.PRODUCTS, **changes}))


def entries(records):
    """u = (1, age, married, rate) of records, each in −1…1."""
    age, married, rate = (np.asarray(column, float) for column in zip(*records, strict=True))
    scaled = (2 * (age - 17.5) / 24.5 - 1, 2 * married - 1, (rate - 3) / 2)
    return np.column_stack([np.ones(len(age)), *scaled])


@pytest.mark.slow
def test_likelihood_matches_mechanism_for_any_population():
    """Four kinds of people, none of them normal: each report's law from the device's integers, then mixed."""
    m = mechanism_for(study().questions[0])
    u = entries(RECORDS)
    whole = np.zeros(2 * len(m.coordinates))
    for share, (age, married, rate) in zip(SHARES, RECORDS, strict=True):
        quantised = np.asarray(m.quantise({"age": age, "married": married, "rate": rate}), float) / 2**20
        for place, (i, j) in enumerate(m.coordinates):
            positive = (1 + quantised[i] * quantised[j]) / 2
            told = float(m.p) * positive + (1 - float(m.p)) * (1 - positive)
            whole[2 * place : 2 * place + 2] += (
                share * m.weights[place] / m.total * np.array([1 - told, told])
            )
    means = (u[:, :, None] * u[:, None] * SHARES[:, None, None]).sum(axis=0)
    first, other = np.asarray(m.coordinates).T
    shares = np.asarray(m.weights) / m.total
    counts = np.random.default_rng(1).multinomial(1000, whole)
    with jax.enable_x64(True):
        law = CellCounts(product_signs(means[first, other], shares, float(m.gain)), 1000)
        assert np.asarray(law.cell_probs) == pytest.approx(whole, abs=1e-6)
        exact = stats.multinomial(1000, np.asarray(law.cell_probs)).logpmf(counts)
        assert float(law.log_prob(counts)) == pytest.approx(exact, abs=1e-9)


def test_prior_of_mean_is_rejected_for_yes_no_feature():
    prior = {"feature_mean": {"married": {"distribution": "normal", "loc": "0.5", "scale": "0.1"}}}
    with pytest.raises(StudyError, match="even prior") as caught:
        study(model={"name": "linear_regression", "prior": prior})
    assert caught.value.field == "questions[0].model.prior.feature_mean.married"
