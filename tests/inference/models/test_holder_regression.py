"""Regressions from data holders' tables: from reports to posteriors, notes on clipping, unlike holders."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import truncnorm

from inference import fit, summarize
from inference.likelihoods.holders import HolderStatistics
from inference.models import model_for
from inference.models.holder_regression import holder_regression, holder_statistics, p_value, refusal, rows_of
from inference.results.intervals import USUAL
from inference.results.printed import text_of
from inference.results.verdict import FIT
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies
from tests.inference.posteriors import page_of, reasons
from tests.kit.errors import raises
from tests.kit.reporting import reduced, reports_of
from tests.statistics import share_is

NOISE = {"name": "table_statistics", "epsilon": "4", "delta": "1e-6"}
TABLE = {**studies.LINEAR, "id": "wage", "ask": "table", "mechanism": NOISE}
TRUTH = {"intercept": 2.5, "coefficient[age]": 0.02, "coefficient[years]": -0.05, "sd": 0.35}
COUNTED = {**NOISE, "count_share": "0.1"}


def study_of(mechanism, **changes):
    return Study(studies.document({**TABLE, "mechanism": mechanism, **changes}, respondent="holder"))


def tables_of(*sizes):
    random, tables = np.random.default_rng(1), []
    for n in sizes:
        age, years = random.normal(29.0, 4.0, n), random.normal(11.0, 3.5, n)
        rate = 2.5 + 0.02 * age - 0.05 * years + random.normal(0, TRUTH["sd"], n)
        tables.append({"age": age, "years": years, "rate": rate})
    return tables


def statistics_of(study, tables):
    (question,) = study.questions
    summary = summarize(study, reports_of(study, tables))
    return holder_statistics(mechanism_for(question), summary.questions[question.id])


def test_statistics_state_the_noise_of_a_laplace_table():
    study = study_of({"name": "table_statistics_laplace", "epsilon": "4"})
    (question,) = study.questions
    mechanism, found = mechanism_for(question), statistics_of(study, tables_of(50, 60))
    assert found.law == "laplace"
    assert found.count_sd == mechanism.count_noise_sd
    np.testing.assert_array_equal(found.noise, found.noise.T)
    at = np.asarray(mechanism.coordinates) - 1 + int(mechanism.intercept)
    np.testing.assert_array_equal(found.noise[at[:, 0], at[:, 1]], mechanism.noise_scale)


def test_noisy_count_is_read_as_at_least_one_record():
    found = statistics_of(study_of(COUNTED), tables_of(50))
    rows = rows_of(replace(found, counts=np.array([-100.0, 0.0, 20.0, 1000.0]), count_sd=20.0))
    assert rows.expected[0] > 1
    assert np.all(np.diff(rows.expected) > 0)
    assert rows.expected[3] == 1000
    assert rows.variance[3] == 400
    assert np.all(rows.variance[:3] < 400)
    law = truncnorm((1 - 20) / 20, np.inf, 20, 20)
    assert rows.expected[2] == pytest.approx(law.mean())
    assert rows.variance[2] == pytest.approx(law.var())


@pytest.mark.slow
def test_page_of_marginal_fit_counts_records_and_holders():
    prior = {"sd": {"distribution": "half_normal", "scale": "1"}}
    model = {"name": "linear_regression", "prior": prior}
    study = study_of(COUNTED | {"epsilon": "16"}, model=model)
    posterior = fit(study, reports_of(study, tables_of(1500, 1500)), seed=2, method="marginal")["wage"]
    assert posterior.verdict.ok, posterior.verdict.reasons
    assert list(posterior.draws) == list(TRUTH)
    for name, value in TRUTH.items():
        draws = posterior.draws[name]
        assert draws.mean() == pytest.approx(value, abs=5 * draws.std()), name
    assert posterior.holders == 2
    assert posterior.n == pytest.approx(3000, abs=100)
    assert posterior.prior["sd"]["distribution"] == "half_normal"
    assert not posterior.predictive.misfit
    page = page_of({"wage": posterior}, study)
    assert f"{posterior.n} records of 2 holders" in page
    assert "Each device" not in page
    assert "Whatever one record of the table holds" in page
    assert "records of 2 holders): usable" in text_of(posterior, USUAL)


def test_marginal_rejects_unsuitable_statistics_with_reason():
    study = study_of({**NOISE, "intercept": False})
    some = statistics_of(study, tables_of(50))
    assert refusal(some) == ""
    assert "noise on every sum" in refusal(replace(some, noise=np.zeros((3, 3))))
    many = replace(some, law="laplace", sums=np.repeat(some.sums, 400, axis=0), counts=np.full(400, 50.0))
    assert "Laplace noise on 2400 sums is too much" in refusal(many)
    wide = replace(some, sums=np.zeros((1, 20, 20)), noise=np.random.default_rng(1).uniform(1, 2, (20, 20)))
    assert "dense matrices" in refusal(wide)
    with raises(InputError, "fit.marginal_statistics", "wage"):
        holder_regression(study.questions[0], replace(some, noise=np.zeros((3, 3))))
    mean = {"feature_mean": {"age": {"distribution": "normal", "loc": "30", "scale": "1"}}}
    stated = study_of(NOISE | {"intercept": False}, model=TABLE["model"] | {"prior": mean})
    with raises(InputError, "prior.feature_mean_without_intercept"):
        fit(stated, reports_of(stated, tables_of(50)))


UNIT = ["-1", "1"]
PLAIN = {
    "features": [{"id": name, "bounds": UNIT} for name in ("a", "b")],
    "response": {"id": "rate", "bounds": UNIT},
}


def records(n, slope, sd=0.3):
    random = np.random.default_rng(0)
    x = random.normal(0, sd, (n, 2))
    return {"a": x[:, 0], "b": x[:, 1], "rate": slope * x.sum(axis=1) + random.normal(0, 0.1, n)}


@pytest.mark.parametrize(
    ("norm", "table", "note"),
    [
        ("1", records(20_000, 0.5), ""),
        ("1", records(20_000, 3.0), "the response's mean and sd"),
        ("0.3", records(20_000, 0.5), "the norm 0.3 cuts many records short"),
        ("1.5", records(20_000, 0.05, 1.0), "mean and sd of a, b has much beyond the bounds"),
        ("1", records(10, 3.0), ""),
    ],
    ids=["none", "response", "norm", "feature", "too few to tell"],
)
def test_holders_clipped_records_are_noted(norm, table, note):
    study = study_of({**NOISE, "epsilon": "8"}, norm=norm, **PLAIN)
    halves = [{name: values[i::2] for name, values in table.items()} for i in (0, 1)]
    notes = holder_regression(study.questions[0], statistics_of(study, halves)).notes
    assert sum("taken to vary by one sd" in each for each in notes) == 1
    notes = [each for each in notes if "skewed" not in each and "one sd" not in each]
    assert [note in each for each in notes] == [True] * bool(note)


@pytest.mark.parametrize("mechanism", [studies.GAUSSIAN, studies.NOISY_RECORD], ids=["summed", "record"])
@pytest.mark.parametrize(("slope", "note"), [(3.0, "response's"), (0.3, "")])
def test_peoples_clipped_records_are_noted(mechanism, slope, note):
    asked = {**TABLE, **PLAIN, "ask": "record", "mechanism": {**mechanism, "epsilon": "60"}}
    question = studies.question_of(asked)
    notes = model_for(question, reduced(question, records(1000, slope))).notes
    assert [note in each for each in notes] == [True] * bool(note)


def p_of(seed, law="gaussian", baselines=0.0, slopes=0.0):
    """The p-value of six holders, whose features always lie elsewhere and are yes/no as often as not."""
    random, sums = np.random.default_rng(seed), []
    shared, sd, n, scale = np.array([0.1, 0.5, -0.3]), 0.2, 1000, 10.0
    for _ in range(6):
        x = random.normal(0.3 * random.normal(size=2), 0.3, (n, 2))
        x[:, 1] = np.where(x[:, 1] > 0, 0.5, -0.5)
        line = shared + np.array([baselines, slopes, slopes]) * random.normal(size=3)
        u = np.column_stack([np.ones(n), x, line[0] + x @ line[1:] + random.normal(0, sd, n)])
        noise = {"gaussian": random.normal, "laplace": random.laplace}[law](0, scale, (4, 4))
        noise[0, 0] = 0
        sums.append(u.T @ u + np.triu(noise) + np.triu(noise, 1).T)
    scales = np.full((4, 4), scale)
    scales[0, 0] = 0
    statistics = HolderStatistics(np.asarray(sums), scales, np.full(6, float(n)), law, intercept=True)
    theta = np.append(-shared, 1.0)
    return p_value(statistics, np.outer(theta, theta), sd**2, seed)


@pytest.mark.slow
def test_similar_holders_are_flagged_at_stated_rate():
    """The holders' patients may differ."""
    assert share_is(sum(p_of(seed) < 0.05 for seed in range(300)), 300, 0.05)


@pytest.mark.attack(18)
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("differences", [{"baselines": 0.2}, {"slopes": 0.6}])
def test_holders_with_different_lines_are_detected(law, differences):
    """Let data holders' baselines or slopes differ under one line."""
    assert sum(p_of(seed, law, **differences) < 1e-3 for seed in range(5)) >= 4


@pytest.mark.attack(18)
@pytest.mark.slow
@pytest.mark.parametrize("baseline_sd", [0.0, 1.0])
def test_hospitals_with_different_baselines_are_detected(baseline_sd):
    """Let hospitals' baselines go with their patients' age, so that one line has twice the slope."""
    fields = [{"id": "age", "bounds": ["18", "98"]}, {"id": "severity", "bounds": ["0", "10"]}]
    response = {"id": "days", "bounds": ["0", "40"]}
    study = study_of({**NOISE, "epsilon": "1"}, features=fields, response=response)
    random, hospitals = np.random.default_rng(3), []
    for _ in range(6):
        unlike = random.normal()
        age, severity = random.normal(58 + 3 * unlike, 12, 2000), random.normal(5, 1.5, 2000)
        days = 2 + baseline_sd * unlike + 0.05 * age + 1.5 * severity + random.normal(0, 3, 2000)
        hospitals.append({"age": age, "severity": severity, "days": days})
    found = fit(study, reports_of(study, hospitals), method="gaussian_approx")["wage"]
    assert any("holders differ" in reason for reason in reasons(found, FIT)) == (baseline_sd > 0)
