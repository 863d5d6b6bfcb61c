"""Regressions from several products a report: likelihood, calibration, and notes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from inference import fit, summarize
from inference.design.simulation import simulate
from inference.false_reports.conformance import findings
from inference.likelihoods import SignPatterns
from inference.likelihoods.regression.products import sign_table
from inference.models import model_for
from inference.models.base import Truth
from inference.models.product_cells import moments_of
from inference.models.sampled_products import FEWEST_REPORTS, counted_signs, few_reports, signs_of
from inference.sampling import sample_prior
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from schemas import Report, Study
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS
from tests import studies
from tests.inference.densities import all_finite
from tests.inference.simulation import seeded

YES_NO = {
    "features": [{"id": name, "ask": "yes_no"} for name in ("a", "b")],
    "response": {"id": "rate", "ask": "yes_no"},
    "model": {"name": "logistic_regression"},
}


def study(products=3, epsilon="4", public=None, **changes):
    stated = {"name": "sampled_products", "epsilon": epsilon, "products": products}
    more = {"public": public} if public else {}
    return Study(studies.document({**studies.PRODUCTS, "mechanism": stated, **changes}, **more))


def records(n, seed):
    random = np.random.default_rng(seed)
    age, married = 17.5 + 24.5 * random.beta(1, 3, n), random.random(n) < 0.3
    rate = np.clip(2.5 + 0.05 * (age - 17.5) + 0.8 * married + random.normal(0, 0.3, n), 1, 5)
    return {"age": age, "married": married, "rate": rate}


def summed(question, answers):
    mechanism = mechanism_for(question)
    values = REDUCTIONS["sampled_products"].reduce(
        mechanism, perturb_many(mechanism, answers, seeded(answers))
    )
    return QuestionSummary(int(values.sum()), values)


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


def test_coverage_requires_correlation_of_signs():
    """One mean of two products that are always the same, of 400 reports: 90 % intervals in 1,000 studies."""
    mean, gain, studies_, n = 0.4, 0.9, 1000, 400
    true = np.array([(1 - mean) / 2, 0, 0, (1 + mean) / 2])
    counts = np.random.default_rng(1).multinomial(n, (1 - gain) / 4 + gain * true, size=studies_)
    grid = np.linspace(0, 0.8, 201)
    density = jax.vmap(lambda m, c: SignPatterns(m * jnp.ones((1, 2)), gain).log_prob(c), (0, None))
    joint = np.asarray(jax.jit(jax.vmap(density, (None, 0)))(grid, counts))
    positive = counts @ (sign_table(2) > 0).sum(axis=1)
    apart = stats.binom.logpmf(positive[:, None], 2 * n, (1 + gain * grid) / 2)
    held = []
    for log in (joint, apart):
        weight = np.exp(log - log.max(axis=1, keepdims=True))
        below = np.sum(weight * (grid < mean), axis=1) / weight.sum(axis=1)
        held.append(int(np.sum(np.abs(below - 0.5) < 0.45)))
    assert stats.binomtest(held[0], studies_, 0.9).pvalue > 1e-4
    assert stats.binomtest(held[1], studies_, 0.9).pvalue < 1e-12


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


@pytest.mark.slow
def test_fit_of_several_products_finds_the_line():
    asked = study(4)
    (question,) = asked.questions
    payloads = perturb_many(mechanism_for(question), records(30_000, 3), seeded(3))
    reports = [
        Report(f"{number:032x}", asked.id, asked.version, asked.digest, {question.id: bytes(payload)})
        for number, payload in enumerate(payloads)
    ]
    halves = [summarize(asked, half) for half in (reports[:9000], reports[9000:])]
    posterior = fit(asked, halves[0].merge(halves[1]), seed=1, method="gaussian_approx")[question.id]
    truth = {"coefficient[age]": 0.05, "coefficient[married]": 0.8, "mean[married]": 0.3}
    for name, value in truth.items():
        draws = posterior.draws[name]
        assert draws.mean() == pytest.approx(value, abs=6 * draws.std()), name
    # With one product a report it is 0.087.
    assert posterior.draws["coefficient[married]"].std() < 0.07
    assert not posterior.predictive.misfit


def test_density_is_finite_for_zero_one_or_many_reports():
    for changes in ({}, YES_NO):
        (question,) = study(2, **changes).questions
        size = REDUCTIONS["sampled_products"].size(mechanism_for(question))
        counts = [np.zeros(size, int), np.eye(size, dtype=int)[3], np.arange(size) * 10**10]
        assert all_finite(question, [QuestionSummary(int(found.sum()), found) for found in counts])


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, YES_NO])
def test_simulated_studies_have_the_moments_of_their_truth(changes):
    """Numbers are not clipped here; yes/no answers cannot be."""
    (question,) = study(2, **changes).questions
    mechanism = mechanism_for(question)
    model = model_for(question, QuestionSummary(0, np.zeros(REDUCTIONS["sampled_products"].size(mechanism))))
    sites = {name: value[0] for name, value in sample_prior(model, 2, 1).items()}
    if not changes:
        # Products with means between −1 and 1, as of records within their bounds.
        sites |= {"sd": 0.2, "feature_sd": sites["feature_sd"] * [0.3, 1], "intercept": 0.1}
        sites |= {"feature_mean": sites["feature_mean"] * [0.2, 1], "coefficients": np.array([0.3, -0.2])}
        sites["feature_sd"][1] = np.sqrt(1 - sites["feature_mean"][1] ** 2)
    parameters = {name: float(value) for name, value in model.parameters(sites).items()}
    found = simulate(question, mechanism, Truth(parameters, sites), 10**6, np.random.default_rng(3), False)
    with jax.enable_x64(True):
        told, variance = map(np.asarray, signs_of(mechanism, np.asarray(moments_of(sites)), 1).signs())
    patterns = found.values.reshape(len(mechanism.blocks), -1)
    seen, reports = patterns @ sign_table(2) / patterns.sum(axis=1, keepdims=True), patterns.sum(axis=1)
    assert np.abs((seen - told) * np.sqrt(reports[:, None] / variance)).max() < 6


def test_too_few_and_false_reports_are_reported():
    (question,) = study(3).questions
    mechanism = mechanism_for(question)
    few, enough = (summed(question, records(n, 4)) for n in (60, 2000))
    assert str(FEWEST_REPORTS) in few_reports(mechanism, few)[0]
    assert few_reports(mechanism, enough) == ()
    assert min(one.p for one in findings(mechanism, enough, None)) > 1e-6
    one_block = np.where(np.arange(len(enough.values)) < 8, enough.n // 8, 0)
    found = list(findings(mechanism, QuestionSummary(int(one_block.sum()), one_block), None))
    assert "drawn" in found[0].words
    assert found[0].p < 1e-12
    one_pattern = enough.values.copy()
    one_pattern[1] += one_pattern[0]
    one_pattern[0] = 0
    assert list(findings(mechanism, QuestionSummary(enough.n, one_pattern), None))[1].p < 1e-3
