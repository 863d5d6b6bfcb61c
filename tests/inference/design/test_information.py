"""Widths by information match textbooks and fits; so does the power of differences."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from inference.design import information
from inference.design.plan import plan_difference
from inference.design.records import RecordPrior
from inference.design.shares import law_of_reports, share_covariance
from inference.design.simulated_posteriors import posterior_draws
from inference.design.simulation import simulate
from inference.models import model_for
from inference.models.base import Truth
from ldp_client import mechanism_for
from schemas import Study
from tests import studies
from tests.studies import question_of

NORMAL = {**studies.NUMBER, "bounds": ["0", "24"], "model": {"name": "normal"}}
STUDY = Study(studies.document(studies.YES_NO))


def choice_of(labels, mechanism, epsilon="1", **more):
    noise = {"name": mechanism, "epsilon": epsilon}
    return {**studies.CHOICE, "choices": list(labels), "mechanism": noise, **more}


@pytest.mark.filterwarnings("error")
def test_counts_beyond_bounds_are_clipped_to_bounds():
    question = question_of({**NORMAL, "bounds": ["5", "29"], "model": {"name": "poisson"}})
    masses = information._masses(question, ["rate"], np.asarray([[9.0]]))[0]
    exact = stats.poisson.pmf(np.arange(5, 30), 9.0)
    exact[0], exact[-1] = stats.poisson.cdf(5, 9.0), stats.poisson.sf(28, 9.0)
    assert masses == pytest.approx(exact, abs=1e-12)


def test_covariance_of_many_unary_bits_matches_patterns(monkeypatch):
    own = mechanism_for(question_of(choice_of("abcdefgh", "oue", "0.5")))
    shares = np.asarray([0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.03, 0.02])
    exact = share_covariance(own, shares)
    monkeypatch.setattr("inference.design.shares.law_of_reports", lambda _mechanism: None)
    assert np.diag(share_covariance(own, shares)) == pytest.approx(np.diag(exact), rel=0.05)
    assert law_of_reports(mechanism_for(question_of(choice_of(map(str, range(20)), "oue")))) is None


@pytest.mark.parametrize(
    ("epsilon", "share", "n"), [("1", 0.003, 5000), ("3", 0.01, 2000), ("1", 0.05, 1000), ("0.5", 0.5, 500)]
)
def test_width_of_a_share_is_the_median_of_its_exact_posteriors(epsilon, share, n):
    """Near 0 too, where a posterior is cut off: a normal's width would be 29 to 63 % too wide."""
    question = question_of(studies.with_epsilon(studies.YES_NO, epsilon))
    own = mechanism_for(question)
    p, q = float(own.p), float(own.q)
    grid = (np.arange(4000) + 0.5) / 4000
    support = q + (p - q) * grid
    exact = []
    for yes in np.random.default_rng(1).binomial(n, q + (p - q) * share, 400):
        log_density = yes * np.log(support) + (n - yes) * np.log1p(-support)
        below = np.cumsum(np.exp(log_density - log_density.max()))
        exact.append(np.diff(np.interp([0.05 * below[-1], 0.95 * below[-1]], below, grid))[0] / 2)
    found = information.Prior(question).widths(question, [{"p": share}], [n])["p"]
    assert found == pytest.approx([np.median(exact)], rel=0.05)


TWENTY = [f"c{place}" for place in range(20)]
ABC = {"p[a]": 0.1, "p[b]": 0.5, "p[c]": 0.4}
DESIGNS = {
    "near 0": (studies.YES_NO, {"p": 0.02}, 2000),
    "oue": (choice_of("abc", "oue"), ABC, 5000),
    "subset selection": (choice_of("abcd", "subset_selection"), {**ABC, "p[c]": 0.2, "p[d]": 0.2}, 5000),
    "many choices": (choice_of(TWENTY, "oue"), {f"p[{label}]": 0.05 for label in TWENTY}, 20_000),
    "refusal": (choice_of("abc", "oue", "2", refusal=True), {**ABC, "refused": 0.1}, 5000),
    "normal": (NORMAL, {"mean": 8.0, "sd": 3.0}, 50_000),
    "poisson": ({**NORMAL, "model": {"name": "poisson"}}, {"rate": 4.0}, 20_000),
}


def fitted_halves(question, parameters, n, sites=None, clip=True):
    """Median half widths of NUTS on twelve simulated studies, {parameter: width}."""
    truth, mechanism, models = Truth(parameters, sites or {}), mechanism_for(question), []
    for seed in range(12):
        part = simulate(question, mechanism, truth, n, np.random.default_rng([0, seed]), clip)
        models.append(model_for(question, part))
    draws = posterior_draws(models, 1, 200)
    ends = {name: np.quantile(found, [0.05, 0.95], axis=1) for name, found in draws.items()}
    return {name: np.median(high - low) / 2 for name, (low, high) in ends.items()}


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_widths_match_fits(design):
    document, truth, n = DESIGNS[design]
    question = question_of(document)
    planned = information.Prior(question).widths(question, [truth], [n])
    fitted = fitted_halves(question, truth, n)
    ratios = [planned[name][0] / fitted[name] for name in truth]
    # Fitted medians of twenty shares differ by chance: their average is compared.
    ratios = [np.mean(ratios)] if len(ratios) > 4 else ratios
    assert ratios == pytest.approx([1] * len(ratios), abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "epsilon"), [(studies.PRODUCTS, "4"), (studies.LINEAR, "4"), (studies.RECORD, "16")]
)
def test_widths_of_a_line_match_fits(template, epsilon):
    """In scaled units: intercept 0.1, slopes 0.3, sd 0.4, feature sds 0.35, correlation 0.2."""
    question, n = question_of(studies.with_epsilon(template, epsilon)), 200_000
    prior = RecordPrior(question)
    numbers = sum(field.bounds is not None for field in question.features)
    point = np.asarray([0.1, 0.3, 0.3, 0.4, 0, 0, *[0.35] * numbers, 0.2])
    planned = prior.widths(question, [point], [n])
    sites = {
        "feature_mean": np.zeros(2),
        "feature_sd": np.asarray([0.35, 0.35 if numbers == 2 else 1.0]),
        "feature_correlation": np.linalg.cholesky([[1, 0.2], [0.2, 1]]),
        "second": prior.moments(point),
    }
    fitted = fitted_halves(question, prior.values(point), n, sites, clip=False)
    assert [planned[name][0] / fitted[name] for name in planned] == pytest.approx([1] * 4, abs=0.1)


def test_power_of_difference_matches_textbook():
    planned = plan_difference(STUDY, "ever", "p", (0.2, 0.3), [1000, 4000, 8000], ["1"])
    own = mechanism_for(STUDY.question("ever"))
    p, q = float(own.p), float(own.q)
    told = [q + (p - q) * share for share in (0.2, 0.3)]
    alone = sqrt(2 * sum(one * (1 - one) for one in told)) / (p - q)
    name = "p: 0.2 − 0.3"
    assert planned.half_widths["1"][name][1] == pytest.approx(information.HALF * alone / sqrt(4000), rel=0.02)
    power = stats.norm.cdf(0.1 / alone * sqrt(4000) - information.HALF)
    assert planned.power("1", name)[1] == pytest.approx(power, abs=0.02)
    wanted = (information.HALF + stats.norm.ppf(0.8)) ** 2 * alone**2 / 0.01
    assert planned.devices_for_power("1", name, 0.8) == pytest.approx(wanted, rel=0.03)


def test_power_of_difference_near_zero_matches_enumeration():
    """By the posteriors of all numbers of reports that 1,000 people of each group can send."""
    planned = plan_difference(STUDY, "ever", "p", (0.1, 0.02), [2000], ["1"])
    own, shares = mechanism_for(STUDY.question("ever")), (np.arange(1000) + 0.5) / 1000
    support = float(own.q) + float(own.p - own.q) * shares
    posteriors = stats.beta.pdf(shares, 1, 1) * stats.binom.pmf(np.arange(1001)[:, None], 1000, support)
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    is_found = np.cumsum(posteriors, axis=1) @ posteriors.T >= 0.95
    p, q = float(own.p), float(own.q)
    low, high = (stats.binom.pmf(np.arange(1001), 1000, q + (p - q) * share) for share in (0.02, 0.1))
    assert planned.power("1", "p: 0.1 − 0.02") == pytest.approx([low @ is_found @ high], abs=0.03)
