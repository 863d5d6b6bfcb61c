"""Regressions from records: signs of one product, or of several, a report, and perturbed records."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import stats

from inference.false_reports.conformance import deviations
from inference.likelihoods.common import CellCounts
from inference.likelihoods.regression.products import SignPatterns, product_signs, sign_table
from inference.models import family_of
from inference.models.base import Truth
from inference.models.regression import Scale
from inference.models.replicates import records
from inference.models.sampled_products import FEWEST_REPORTS, counted_signs, few_reports
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import StudyError
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS
from summaries.reductions.records import record_rows
from tests import studies
from tests.kit.reporting import reduced
from tests.statistics import seeded

RECORDS = [(17.5, True, 1.0), (42.0, False, 5.0), (33.1, True, 2.1), (20.0, False, 4.9)]
SHARES = np.array([0.1, 0.2, 0.3, 0.4])


def entries(records):
    """u = (1, age, married, rate) of records, each in −1…1."""
    age, married, rate = (np.asarray(column, float) for column in zip(*records, strict=True))
    scaled = (2 * (age - 17.5) / 24.5 - 1, 2 * married - 1, (rate - 3) / 2)
    return np.column_stack([np.ones(len(age)), *scaled])


@pytest.mark.slow
def test_likelihood_matches_mechanism_for_any_population():
    """Four kinds of people, none of them normal: each report's law from the device's integers, then mixed."""
    m = studies.mechanism_of(studies.PRODUCTS)
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
        studies.question_of(studies.PRODUCTS, model={"name": "linear_regression", "prior": prior})
    assert caught.value.field == "questions[0].model.prior.feature_mean.married"


THREE = {**studies.PRODUCTS, "mechanism": {"name": "sampled_products", "epsilon": "4", "products": 3}}


def people(n, seed):
    random = np.random.default_rng(seed)
    age, married = 17.5 + 24.5 * random.beta(1, 3, n), random.random(n) < 0.3
    rate = np.clip(2.5 + 0.05 * (age - 17.5) + 0.8 * married + random.normal(0, 0.3, n), 1, 5)
    return {"age": age, "married": married, "rate": rate}


@pytest.mark.slow
def test_density_is_normal_with_correlations_of_patterns():
    counts = np.array([30, 5, 9, 40, 22, 7, 3, 18, 6, 50, 2, 1, 4, 11, 13, 60])
    means, gain = np.array([[0.2, -0.1], [0.4, 0.0], [-0.6, 0.3], [0.9, 0.5]]), 0.9
    expected = 0.0
    for block, told in zip(counts.reshape(4, 4), gain * means, strict=True):
        # Four reports more, one of each pattern.
        seen = np.repeat(sign_table(2), block + 1, axis=0)
        spread = np.sqrt((1 - told**2) / block.sum())
        covariance = np.corrcoef(seen.T) * np.outer(spread, spread)
        law = stats.multivariate_normal(told, covariance)
        expected += law.logpdf(np.average(sign_table(2), axis=0, weights=block))
    with jax.enable_x64(True):
        assert float(SignPatterns(means, gain).log_prob(counts)) == pytest.approx(expected, abs=1e-9)
        assert float(SignPatterns(means, gain).log_prob(0 * counts)) == 0


def test_counts_of_signs_match_the_reports():
    mechanism = studies.mechanism_of(THREE)
    payloads = perturb_many(mechanism, people(400, 2), seeded(2))
    expected = np.zeros((len(mechanism.coordinates), 2), int)
    for payload in payloads:
        place, pattern = divmod(int(payload[0]), 8)
        for slot, product in enumerate(mechanism.blocks[place]):
            expected[product, pattern >> (2 - slot) & 1] += 1
    counts = REDUCTIONS["sampled_products"].reduce(mechanism, payloads)
    assert np.array_equal(counted_signs(mechanism, counts), expected)


def test_too_few_and_false_reports_are_reported():
    question = studies.question_of(THREE)
    mechanism = mechanism_for(question)
    few, enough = (reduced(question, people(n, 4)) for n in (60, 2000))
    assert str(FEWEST_REPORTS) in few_reports(mechanism, few)[0]
    assert few_reports(mechanism, enough) == ()
    assert min(one.p for one in deviations(mechanism, enough, None)) > 1e-6
    one_block = np.where(np.arange(len(enough.values)) < 8, enough.n // 8, 0)
    found = list(deviations(mechanism, QuestionSummary(int(one_block.sum()), one_block), None))
    assert "drawn" in found[0].words
    assert found[0].p < 1e-12
    one_pattern = enough.values.copy()
    one_pattern[1] += one_pattern[0]
    one_pattern[0] = 0
    assert list(deviations(mechanism, QuestionSummary(enough.n, one_pattern), None))[1].p < 1e-3


STRONG = {"name": "gaussian_record", "epsilon": "40", "delta": "1e-5", "response_share": "0.25"}
LOGISTIC = {**studies.YES_NO_RECORD, "mechanism": STRONG}


def test_replicated_records_match_device_reports():
    """Counts in cells of perturbed features and told responses, from devices and from the model's own law."""
    question = studies.question_of(LOGISTIC)
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
