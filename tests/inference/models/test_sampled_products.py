"""Regressions from records: signs of sampled products, features with levels, and perturbed records."""

import json
from itertools import product

import jax
import numpy as np
import pytest
from scipy import stats

from inference.design.calibration import calibrate, covered
from inference.likelihoods.regression.products import SignPatterns, sign_table
from inference.models import family_of, leveled_cells, model_for
from inference.models.base import Fit, Truth
from inference.models.regression import Regression, Scale
from inference.models.regressions import perturbed_counts
from inference.models.sampled_products import FEWEST_REPORTS, cell_probabilities, counted_signs, few_reports
from inference.sampling import gaussian_approximation
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import StudyError
from ldpkit.cli import main
from schemas import Study
from summaries import QuestionSummary, Summary
from summaries.reductions import REDUCTIONS
from summaries.reductions.records import record_rows
from tests import studies
from tests.kit.errors import raises
from tests.kit.reporting import reduced
from tests.statistics import seeded

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
        for slot, coordinate in enumerate(mechanism.blocks[place]):
            expected[coordinate, pattern >> (2 - slot) & 1] += 1
    counts = REDUCTIONS["sampled_products"].reduce(mechanism, payloads)
    assert np.array_equal(counted_signs(mechanism, counts), expected)


def test_too_few_reports_of_products_together_are_noted():
    question = studies.question_of(THREE)
    few, enough = (few_reports(mechanism_for(question), reduced(question, people(n, 4))) for n in (60, 2000))
    assert str(FEWEST_REPORTS) in few[0]
    assert enough == ()


def test_replicated_records_match_device_reports():
    """Counts in cells of perturbed features and told responses, from devices and from the model's own law."""
    strong = {**studies.NOISY_RECORD, "epsilon": "40", "delta": "1e-5"}
    question = studies.question_of(studies.YES_NO_RECORD, mechanism=strong)
    mechanism, random = mechanism_for(question), np.random.default_rng(6)
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
    found = perturbed_counts(mechanism, np.column_stack(record_rows(mechanism, sent)))
    drawn = found.draw(sites, random)
    away = (found.observed - drawn) / np.sqrt(found.observed + drawn + 1)
    assert np.abs(away).max() < 6
    wrong = found.draw({**sites, "intercept": np.asarray(-0.3)}, random)
    assert np.abs((found.observed - wrong) / np.sqrt(found.observed + wrong + 1)).max() > 6


JOB = {"ask": "choice", "choices": ["none", "part", "full"]}
EIGHTHS = {"bounds": ["-1", "1"], "cuts": ["-0.75", "-0.5", "-0.25", "0", "0.25", "0.5", "0.75"]}
RISK = {
    "id": "risk",
    "ask": "record",
    "response": {"id": "ill", "ask": "yes_no"},
    "mechanism": {"name": "sampled_products", "epsilon": "2"},
    "model": {"name": "logistic_regression"},
}


def question_of(*fields):
    features = [{"id": f"f{place}", **field} for place, field in enumerate(fields)]
    return studies.question_of(RISK, features=features)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "intercept", "slope"), [(stats.norm(0, 0.4), 0, 2), (stats.beta(1, 4, -1, 2), -1, 1)]
)
def test_slopes_of_binned_number_are_unbiased(law, intercept, slope):
    """Counts are what very many people leave on average, whose numbers are clipped last.

    A model of normal features gives up to 2.32 for 2, and 0.15 for 0 (docs/models.md).
    """
    question = question_of(EIGHTHS)
    mechanism = mechanism_for(question)
    (field,) = leveled_cells.levels_of(mechanism)
    answers = law.ppf((np.arange(100_000) + 0.5) / 100_000)
    codes = field.codes[np.searchsorted(np.linspace(-0.75, 0.75, 7), answers)]
    known = np.column_stack([np.ones(len(answers)), codes])
    cross = known.T @ np.tanh((intercept + slope * answers) / 2) / len(answers)
    among = known.T @ known / len(answers)
    second = np.block([[among, cross[:, None]], [cross[None], np.ones((1, 1))]])
    counts = np.rint(10**11 * cell_probabilities(mechanism, {"second": second})).astype(int)
    model = model_for(question, QuestionSummary(int(counts.sum()), counts))
    found = model.parameters(gaussian_approximation.draw(model, 1).sites)
    assert found["coefficient[f0]"].mean() == pytest.approx(slope, rel=0.02)
    assert found["intercept"].mean() == pytest.approx(intercept, abs=0.02)


@pytest.mark.slow
def test_transform_matches_enumeration():
    question = question_of(JOB, {**EIGHTHS, "cuts": ["-0.2", "0.5"]}, {"ask": "yes_no"})
    mechanism = mechanism_for(question)
    fields = leveled_cells.levels_of(mechanism)
    random = np.random.default_rng(1)
    with jax.enable_x64(True):
        law = np.asarray(leveled_cells.shares_of_cells(fields, random.normal(size=5), random.normal(size=8)))
        line = Regression(0.3, np.array([1.0, -0.5, 2.0, 0.7]))
        told = np.asarray(leveled_cells.logistic_response(*leveled_cells.line_in_cells(fields, law, line)))
        found = np.asarray(leveled_cells.second_moments(fields, law, told, 1.0))
    second = np.zeros_like(found)
    for job, age, married in product(range(3), range(3), range(2)):
        answers = {"f0": JOB["choices"][job], "f1": (-0.6, 0.1, 0.9)[age], "f2": bool(married)}
        for y in (-1, 1):
            u = np.asarray(mechanism.quantise({**answers, "ill": y > 0})) / 2**20
            chance = law[job, age, married] * (1 + y * told[job, age, married]) / 2
            second += chance * np.outer(u, u)
    first, other = np.asarray(mechanism.coordinates).T
    assert found[first, other] == pytest.approx(second[first, other], abs=1e-12)
    assert law.sum() == pytest.approx(1)
    assert np.abs(found[first, other] - second[first, other[::-1]]).max() > 0.01


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ([{"bounds": ["0", "1"], "cuts": ["0.5", "0.2"]}], "features[0].cuts"),
        ([JOB, {"bounds": ["0", "1"]}], "features[1].cuts"),
        ([EIGHTHS] * 6, "features"),
        ([{"ask": "choice", "choices": [str(n) for n in range(17)]}], "features[0].choices"),
    ],
)
def test_invalid_levels_are_rejected(fields, where):
    with pytest.raises(StudyError) as caught:
        question_of(*fields)
    assert caught.value.field == f"questions[0].{where}"


def test_prior_of_mean_is_rejected_for_yes_no_feature():
    prior = {"feature_mean": {"married": {"distribution": "normal", "loc": "0.5", "scale": "0.1"}}}
    with raises(StudyError, "study.prior_invalid", field="questions[0].model.prior.feature_mean.married"):
        studies.question_of(studies.PRODUCTS, model={"name": "linear_regression", "prior": prior})


@pytest.mark.slow
def test_intervals_have_their_stated_coverage():
    found = calibrate(question_of(JOB), 20, 20_000, 1)
    line = [ranks for name, ranks in found.ranks.items() if name.startswith(("inter", "coef"))]
    shares = [covered(ranks, 0.9) for ranks in line]
    assert 0.78 <= np.mean(shares) <= 1


def remarks(means, sds, spread=0.01, template=studies.LOGISTIC):
    study = Study(studies.document(template))
    summary = Summary.empty(study).questions[template["id"]]
    random = np.random.default_rng(1)
    around = lambda middle: middle * np.exp(spread * random.normal(size=(4, 100, 2)))  # noqa: E731
    draws = {"feature_mean": around(np.asarray(means)), "feature_sd": around(np.asarray(sds))}
    draws |= {"intercept": np.zeros((4, 100)), "coefficients": np.zeros((4, 100, 2)), "sd": np.ones((4, 100))}
    model = model_for(study.questions[0], QuestionSummary(0, summary.values, summary.reports))
    fit = Fit(draws, {}, {}, 0)
    return tuple(finding.text for check in model.checks for finding in check(fit))


def test_features_crowded_at_a_bound_are_noted():
    assert remarks([0.1, -0.2], [0.3, 0.35]) == ()
    (one,) = remarks([0.1, 0.05], [0.3, 1.0])
    assert "which years cannot be" in one
    (both,) = remarks([-0.96, 0.05], [0.28, 1.0])
    assert "which age, years cannot be" in both
    assert remarks([0.05, 0.05], [1.0, 1.0], spread=0.8) == ()
    # A linear regression does without their law; that records may be clipped is said of it all the same.
    assert not any("cannot be" in one for one in remarks([0.05, 0.05], [1.0, 1.0], template=studies.LINEAR))


def test_study_check_advises_cuts_between_whole_numbers(tmp_path, capsys):
    for cuts, advised in (["1", "2", "3"], True), (["0.5", "1.5"], False):
        asked = {"features": [{"id": "children", "bounds": ["0", "8"], "cuts": cuts}]}
        document = studies.document({**RISK, **asked})
        (tmp_path / "study.json").write_text(json.dumps(document))
        assert main(["check", str(tmp_path / "study.json")]) == 0
        assert ("0.5 instead of 1" in capsys.readouterr().err) is advised
