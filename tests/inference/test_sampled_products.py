"""Linear regression from signs of sampled products: the exact law, the posterior, and errors."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import stats

from inference import fit, summarize
from inference.likelihoods import ProductSigns
from inference.models import model_for
from inference.models.product_cells import cell_probabilities
from inference.models.sampled_products import second_moments
from inference.sampling import sample, sample_prior
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldp_client.documents.errors import StudyError
from schemas import Report, Study
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS
from tests import studies
from tests.inference.densities import all_finite
from tests.inference.simulation import seeded

RECORDS = [(17.5, True, 1.0), (42.0, False, 5.0), (33.1, True, 2.1), (20.0, False, 4.9)]
SHARES = np.array([0.1, 0.2, 0.3, 0.4])


def study(**changes):
    return Study(studies.document({**studies.PRODUCTS, **changes}))


def one_feature(epsilon="1"):
    stated = {"name": "sampled_products", "epsilon": epsilon, "weights": {"response": 2}}
    return study(features=studies.FEATURES[:1], mechanism=stated)


def entries(records):
    """u = (1, age, married, rate) of records, each in −1…1."""
    age, married, rate = (np.asarray(column, float) for column in zip(*records, strict=True))
    scaled = (2 * (age - 17.5) / 24.5 - 1, 2 * married - 1, (rate - 3) / 2)
    return np.column_stack([np.ones(len(age)), *scaled])


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
        law = ProductSigns(means[first, other], shares, float(m.gain), 1000)
        assert np.asarray(law.cell_probs) == pytest.approx(whole, abs=1e-6)
        exact = stats.multinomial(1000, np.asarray(law.cell_probs)).logpmf(counts)
        assert float(law.log_prob(counts)) == pytest.approx(exact, abs=1e-9)


def test_second_moments_match_the_line():
    """For features and a residual that are not normal."""
    random = np.random.default_rng(2)
    x = np.column_stack([random.beta(1, 4, 200_000) * 2 - 1, np.sign(random.normal(size=200_000))])
    slopes, residual = np.array([0.3, -0.2]), random.exponential(0.2, 200_000)
    residual -= residual.mean() + (x - x.mean(axis=0)) @ np.linalg.lstsq(x - x.mean(axis=0), residual)[0]
    residual -= residual.mean()
    y = 0.1 + x @ slopes + residual
    u = np.column_stack([np.ones(len(y)), x, y])
    found = second_moments(np.asarray(0.1), slopes, x.mean(axis=0), np.cov(x.T, ddof=0), residual.std())
    assert found == pytest.approx(u.T @ u / len(u), abs=1e-12)


def log_rest(told, bend=0.98):
    """log(1 − told), where means beyond −1 and 1 would make it none: see ProductSigns."""
    size = np.abs(told)
    bent = bend + (1 - bend) * np.tanh((size - bend) / (1 - bend))
    return np.log(np.maximum(1 - np.where(size > bend, np.sign(told) * bent, told), 1e-300))


@pytest.mark.slow
def test_posterior_matches_brute_force():
    """Prior draws weighted by a separate likelihood agree; one that ignores the noise does not."""
    (question,) = one_feature().questions
    m = mechanism_for(question)
    counts = np.array([20, 10, 14, 18, 6, 24, 30, 34, 5, 26])
    summary = QuestionSummary(int(counts.sum()), counts)
    model = model_for(question, summary)
    drawn = model.parameters(sample(model, 3, kept=1000).sites)

    sites = sample_prior(model, 4, 200_000)
    means, sds = sites["feature_mean"][:, 0], sites["feature_sd"][:, 0]
    middle = sites["intercept"] + sites["coefficients"][:, 0] * means
    variance = (sites["coefficients"][:, 0] * sds) ** 2 + sites["sd"] ** 2
    products = {
        (0, 1): means,
        (0, 2): middle,
        (1, 1): sds**2 + means**2,
        (1, 2): sites["coefficients"][:, 0] * sds**2 + means * middle,
        (2, 2): variance + middle**2,
    }
    parameters = model.parameters(sites)
    for factor, agrees in ((1.0, True), (1 / float(m.gain), False)):
        log_weight = np.zeros(200_000)
        for place, pair in enumerate(m.coordinates):
            told = factor * float(m.gain) * products[pair]
            log_weight += counts[2 * place] * log_rest(told) + counts[2 * place + 1] * log_rest(-told)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        effective = 1 / np.sum(weight**2)
        assert effective > 300 or not agrees
        away = []
        for name in ("coefficient[age]", "sd", "mean[age]", "sd[age]", "r_squared"):
            mean = np.sum(weight * parameters[name])
            spread = np.sqrt(np.sum(weight * (parameters[name] - mean) ** 2))
            away.append(abs(drawn[name].mean() - mean) / (spread * np.sqrt(1 / effective + 1 / 1000)))
        assert (max(away) < 6) == agrees


@pytest.mark.slow
def test_fit_of_non_normal_answers_finds_the_line():
    """A skewed feature and a yes/no through the device's own sampler; intervals hold the line."""
    asked = study(mechanism={"name": "sampled_products", "epsilon": "3"})
    (question,) = asked.questions
    random = np.random.default_rng(5)
    n = 60_000
    age, married = 17.5 + 24.5 * random.beta(1, 3, n), random.random(n) < 0.3
    rate = np.clip(2.5 + 0.05 * (age - 17.5) + 0.8 * married + random.normal(0, 0.3, n), 1, 5)
    payloads = perturb_many(
        mechanism_for(question), {"age": age, "married": married, "rate": rate}, seeded(rate)
    )
    reports = [
        Report(f"{number:032x}", asked.id, asked.version, asked.digest, {question.id: bytes(payload)})
        for number, payload in enumerate(payloads)
    ]
    halves = [summarize(asked, half) for half in (reports[: n // 3], reports[n // 3 :])]
    posterior = fit(asked, halves[0].merge(halves[1]), seed=1, method="gaussian_approx")[question.id]
    truth = {
        "coefficient[age]": 0.05,
        "coefficient[married]": 0.8,
        "intercept": 2.5 - 0.05 * 17.5,
        "mean[married]": 0.3,
        "mean[age]": age.mean(),
        "sd[age]": age.std(),
    }
    for name, value in truth.items():
        draws = posterior.draws[name]
        assert draws.mean() == pytest.approx(value, abs=6 * draws.std()), name
    assert posterior.draws["coefficient[married]"].std() < 0.1
    assert not posterior.predictive.misfit


def test_density_is_finite_for_zero_one_or_many_reports():
    counts = [np.zeros(16, int), np.eye(16, dtype=int)[3], np.arange(16) * 10**12]
    (question,) = study().questions
    assert all_finite(question, [QuestionSummary(int(found.sum()), found) for found in counts])


def test_summaries_add_up_and_impossible_ones_are_rejected():
    m = mechanism_for(study().questions[0])
    random = np.random.default_rng(6)
    n = 5000
    columns = {"age": random.uniform(17, 43, n), "married": random.random(n) < 0.5, "rate": np.full(n, 2.0)}
    payloads = perturb_many(m, columns, seeded(columns))
    reduction = REDUCTIONS["sampled_products"]
    whole = reduction.reduce(m, payloads)
    assert np.array_equal(whole, sum(reduction.reduce(m, part) for part in np.array_split(payloads, 3)))
    assert reduction.possible(m, n, whole)
    assert not reduction.possible(m, n + 1, whole)
    assert not reduction.possible(m, n, whole - np.eye(len(whole), dtype=int)[0] * (whole[0] + 1))


def test_simulation_gives_yes_no_feature_its_implied_sd():
    (question,) = study().questions
    model = model_for(question, QuestionSummary(0, np.zeros(16, dtype=np.int64)))
    sites = {name: value[0] for name, value in sample_prior(model, 1, 1).items()}
    cells = cell_probabilities(mechanism_for(question), sites)
    assert cells.sum() == pytest.approx(1, abs=1e-12)
    assert sites["feature_sd"][1] == pytest.approx(np.sqrt(1 - sites["feature_mean"][1] ** 2))


def test_prior_of_mean_is_rejected_for_yes_no_feature():
    prior = {"feature_mean": {"married": {"distribution": "normal", "loc": "0.5", "scale": "0.1"}}}
    with pytest.raises(StudyError, match="even prior") as caught:
        study(model={"name": "linear_regression", "prior": prior})
    assert caught.value.field == "questions[0].model.prior.feature_mean.married"
