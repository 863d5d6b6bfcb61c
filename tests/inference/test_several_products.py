"""Regressions from several products a report: likelihood, calibration, and notes."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import stats

from inference.false_reports.conformance import deviations
from inference.likelihoods.regression.products import SignPatterns, sign_table
from inference.models.sampled_products import FEWEST_REPORTS, counted_signs, few_reports
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from schemas import Study
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS
from tests import studies
from tests.kit.reporting import reduced
from tests.statistics import seeded


def study(products=3, epsilon="4", public=None, **changes):
    stated = {"name": "sampled_products", "epsilon": epsilon, "products": products}
    more = {"public": public} if public else {}
    return Study(studies.document({**studies.PRODUCTS, "mechanism": stated, **changes}, **more))


def records(n, seed):
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
    (question,) = study().questions
    mechanism = mechanism_for(question)
    payloads = perturb_many(mechanism, records(400, 2), seeded(2))
    expected = np.zeros((len(mechanism.coordinates), 2), int)
    for payload in payloads:
        place, pattern = divmod(int(payload[0]), 8)
        for slot, product in enumerate(mechanism.blocks[place]):
            expected[product, pattern >> (2 - slot) & 1] += 1
    counts = REDUCTIONS["sampled_products"].reduce(mechanism, payloads)
    assert np.array_equal(counted_signs(mechanism, counts), expected)


def test_too_few_and_false_reports_are_reported():
    (question,) = study(3).questions
    mechanism = mechanism_for(question)
    few, enough = (reduced(question, records(n, 4)) for n in (60, 2000))
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
