"""Regressions from data holders' tables: from reports to posteriors, for any tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import truncnorm

from inference import fit
from inference.likelihoods.holders.statistics import exact
from inference.models.holder_regression import holder_regression, refusal, rows_of
from inference.results.intervals import USUAL
from inference.results.printed import text_of
from ldp_client.documents.errors import InputError
from tests.inference.densities import value_and_gradient
from tests.inference.holder_tables import (
    INTERCEPT,
    SD,
    TABLE,
    reports_of,
    statistics_of,
    study_of,
    table,
    tables_of,
)
from tests.inference.posteriors import page_of
from tests.kit.errors import raises

COUNTED = {"name": "table_statistics", "epsilon": "1", "delta": "1e-6", "count_share": "0.1"}
DDPLR = {"name": "table_normal_equations", "epsilon": "1", "delta": "1e-6"}
LAPLACE = {"name": "table_statistics_laplace", "epsilon": "1"}
MECHANISMS = {
    "default": TABLE["mechanism"],
    "counted": COUNTED,
    "averages, centred": {**TABLE["mechanism"], "average": 3, "intercept": False},
    "ddplr": DDPLR,
    "laplace": LAPLACE,
}


@pytest.mark.parametrize("mechanism", [COUNTED, MECHANISMS["averages, centred"], LAPLACE])
def test_statistics_match_exact_sums_up_to_noise(mechanism):
    """Against the exact sums, in units of the noise that the mechanism states."""
    study = study_of({**mechanism, "epsilon": "40"})
    tables = tables_of([300, 600])
    found = statistics_of(study, tables)
    scaled = []
    for one in tables:
        x = np.column_stack([(one["age"] - 29.75) / 12.25, (one["years"] - 11.5) / 11.5])
        x = x / np.maximum(np.linalg.norm(x, axis=1), 1)[:, None]
        scaled.append((x, np.clip((one["rate"] - 3) / 2, -1, 1)))
    k = found.average
    if k > 1:
        scaled = [(x.reshape(-1, k, 2).sum(1) / k**0.5, y.reshape(-1, k).sum(1) / k**0.5) for x, y in scaled]
    expected = exact(scaled, found.intercept).sums
    released = np.isfinite(found.noise) & (found.noise > 0)
    distance = (found.sums - expected)[:, released] / found.noise[released]
    assert np.abs(distance).max() < 8 if found.law == "gaussian" else 40
    assert np.std(distance) > 0.2
    assert np.abs(found.counts - [300, 600]).max() <= 8 * found.count_sd
    assert found.has_squares == ("normal_equations" not in mechanism["name"])


def collinear(random, n):
    one = table(random, n)
    return {**one, "years": (one["age"] - 17.5) * 23 / 24.5}


def clipped(n):
    return {name: np.full(n, 1e6) for name in ("age", "years", "rate")}


AWKWARD = {
    "one holder": lambda random: [table(random, 400)],
    "fewer records than columns": lambda random: [table(random, 1) for _ in range(3)],
    "collinear": lambda random: [collinear(random, 400)],
    "all clipped": lambda random: [clipped(400), table(random, 10)],
    "many and few": lambda random: [table(random, n) for n in (3, 30, 5000)],
    "no holder": lambda _: [],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "epsilon", "cases"),
    [
        ("counted", "0.01", ["fewer records than columns", "no holder"]),
        ("default", "20", ["collinear", "all clipped", "no holder"]),
        ("laplace", "1", ["one holder", "no holder"]),
    ],
)
def test_density_is_finite_for_any_table(kind, epsilon, cases):
    study = study_of({**MECHANISMS[kind], "epsilon": epsilon})
    for name in cases:
        tables = AWKWARD[name](np.random.default_rng(2))
        model = holder_regression(study.questions[0], statistics_of(study, tables))
        value, slope = value_and_gradient(model)
        assert np.isfinite(value), name
        assert np.isfinite(slope).all(), name


def test_noisy_count_is_read_as_at_least_one_record():
    statistics = replace(
        statistics_of(study_of(COUNTED), tables_of([50])),
        counts=np.array([-100.0, 0.0, 20.0, 1000.0]),
        count_sd=20.0,
    )
    rows = rows_of(statistics)
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
    study = study_of(COUNTED | {"epsilon": "16"}, {"sd": {"distribution": "half_normal", "scale": "1"}})
    posterior = fit(study, reports_of(study, tables_of([1500, 1500])), seed=2, method="marginal")["wage"]
    assert posterior.verdict.ok, posterior.verdict.reasons
    truth = {"intercept": INTERCEPT, "coefficient[age]": 0.02, "coefficient[years]": -0.05, "sd": SD}
    assert list(posterior.draws) == list(truth)
    for name, value in truth.items():
        draws = posterior.draws[name]
        assert draws.mean() == pytest.approx(value, abs=5 * draws.std()), name
    assert posterior.holders == 2
    assert posterior.n == pytest.approx(3000, abs=100)
    assert posterior.prior["sd"]["distribution"] == "half_normal"
    assert posterior.predictive is not None
    assert "no misfit shows" in posterior.predictive.in_words()
    page = page_of({"wage": posterior}, study)
    assert f"{posterior.n} records of 2 holders" in page
    assert "Each device" not in page
    assert "Whatever one record of the table holds" in page
    assert "records of 2 holders): usable" in text_of(posterior, USUAL)


@pytest.mark.slow
def test_a_published_method_fits_a_study_and_names_its_prior(monkeypatch):
    """Any method of the registry; here one whose draws are known."""
    from inference.published import posteriors
    from inference.published.base import Method
    from inference.sampling import Sampled

    def draw(statistics, _prior, run):
        random = np.random.default_rng(run.seed)
        theta = random.normal(0.2, 0.01, (4, 500, statistics.columns))
        return Sampled(
            {"theta": theta, "variance": random.gamma(9, 0.01, (4, 500))}, np.zeros((4, 500), bool)
        )

    known = Method(
        "mcmc_ind",
        lambda statistics: "" if statistics.holders > 1 else "one holder",
        draw,
    )
    monkeypatch.setattr(posteriors, "method_named", lambda _: known)
    study = study_of()
    posterior = fit(study, reports_of(study, tables_of([50, 70])), method="mcmc_ind")["wage"]
    assert (posterior.method, posterior.n, posterior.holders) == ("mcmc_ind", 120, 2)
    assert posterior.verdict.ok
    slope = 0.2 * 2 / 12.25
    assert posterior.draws["coefficient[age]"].mean() == pytest.approx(slope, rel=0.01)
    assert posterior.draws["sd"].mean() == pytest.approx(2 * 0.3, rel=0.05)
    assert posterior.prior["coefficients"]["age"]["scale"] == pytest.approx(2 / 12.25)
    assert "mcmc_ind" in page_of({"wage": posterior}, study)
    with raises(InputError, "fit.method_statistics", "wage: mcmc_ind", "one holder"):
        fit(study, reports_of(study, tables_of([50])), method="mcmc_ind")
    with raises(InputError, "fit.no_reports"):
        fit(study, [], method="mcmc_ind")
    stated = study_of(prior={"sd": {"distribution": "half_normal", "scale": "1"}})
    with raises(InputError, "prior.not_of_method", "mcmc_ind"):
        fit(stated, reports_of(stated, tables_of([50])), method="mcmc_ind")


def test_marginal_rejects_unsuitable_statistics_with_reason():
    study = study_of({"name": "table_statistics", "epsilon": "1", "delta": "1e-6", "intercept": False})
    some = statistics_of(study, tables_of([50]))
    assert refusal(some) == ""
    assert "noise on every sum" in refusal(replace(some, noise=np.zeros((3, 3))))
    many = replace(some, law="laplace", sums=np.repeat(some.sums, 400, axis=0), counts=np.full(400, 50.0))
    assert "Laplace noise on 2400 sums is too much" in refusal(many)
    wide = replace(some, sums=np.zeros((1, 20, 20)), noise=np.random.default_rng(1).uniform(1, 2, (20, 20)))
    assert "dense matrices" in refusal(wide)
    with raises(InputError, "fit.marginal_statistics", "wage"):
        holder_regression(study.questions[0], replace(some, noise=np.zeros((3, 3))))
    mean = {"feature_mean": {"age": {"distribution": "normal", "loc": "30", "scale": "1"}}}
    stated = study_of({**DDPLR, "intercept": False}, mean)
    with raises(InputError, "prior.feature_mean_without_intercept"):
        fit(stated, reports_of(stated, tables_of([50])))
