"""A private number as outcome: its likelihood matches brute force, and its posterior finds the truth."""

import itertools
from math import exp, log, sqrt

import jax
import numpy as np
import pandas as pd
import pytest
from numpy.polynomial.legendre import leggauss
from scipy import integrate, stats
from scipy.special import expit

from inference.analyses.program import assemble
from inference.analyses.table import table_of
from ldp_client.documents.errors import InputError
from tests.inference.analyses.simulated import GAUSSIAN, LAPLACE, SHARP, YES_NO, log_likelihood, reported
from tests.kit.channels import known_channel
from tests.kit.errors import raises

LOW, HIGH = 0.0, 12.0


def simulated(document):
    n, random = 8, np.random.default_rng(0)
    age = random.normal(40, 10, n).round()
    answers = np.clip(random.normal(4 + 0.05 * (age - 40), 2), LOW, HIGH)
    ever = known_channel("ever", ["no", "yes"], random.integers(0, 2, n), YES_NO)
    return table_of(pd.DataFrame({"age": age}), [reported(document, answers, 0), ever])


def brute(family, channel, z, eta, sigma):
    """P(z) = Σ or ∫ noise(z − clipped x) × law(x), by scipy, in pieces."""
    noise = stats.laplace(0, channel.scale) if channel.noise == "laplace" else stats.norm(0, channel.scale)
    if family == "poisson":
        whole = np.arange(0, 400)
        return float(np.sum(stats.poisson.pmf(whole, exp(eta)) * noise.pdf(z - np.clip(whole, LOW, HIGH))))
    law = stats.norm(eta, sigma) if family == "normal" else stats.expon(0, exp(eta))
    total = law.cdf(LOW) * noise.pdf(z - LOW) + law.sf(HIGH) * noise.pdf(z - HIGH)
    pieces = sorted({LOW, HIGH, min(max(z, LOW), HIGH), min(max(eta, LOW), HIGH)})
    for left, right in itertools.pairwise(pieces):
        total += integrate.quad(
            lambda x: law.pdf(x) * noise.pdf(z - x), left, right, epsabs=1e-14, epsrel=1e-13
        )[0]
    return float(total)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("document", "family"),
    [
        (LAPLACE, "normal"),
        (LAPLACE, "exponential"),
        (GAUSSIAN, "normal"),
        (GAUSSIAN, "exponential"),
        (GAUSSIAN, "poisson"),
    ],
)
def test_likelihood_matches_quadrature(document, family):
    table = simulated(document)
    found = assemble(table, "hours ~ age + ever", family=family)
    random, start = np.random.default_rng(5), found.initial()
    sites = {name: np.asarray(one) + 0.2 * random.random(np.shape(one)) for name, one in start.items()}
    b = {name: float(value) for name, value in found.parameters(sites).items()}
    hours, ever = table.private["hours"], table.private["ever"]
    total = 0.0
    for place, age in enumerate(table.public["age"]):
        z, eta = hours.number.reports[hours.codes[place]], b["Intercept"] + b["age"] * age
        share = expit(b["ever_Intercept[yes]"] + b["ever_age[yes]"] * age)
        each = [
            brute(family, hours.number, float(z), eta + effect, b.get("sigma"))
            for effect in (0.0, b["ever[yes]"])
        ]
        said = np.asarray(YES_NO)[:, ever.codes[place]]
        total += log(np.sum([1 - share, share] * said * each))
    assert log_likelihood(found, sites) == pytest.approx(total, abs=1e-8)


def test_reports_are_in_units_of_the_question():
    answers = np.full(4000, 9.0)
    column = reported(GAUSSIAN, answers)
    values = column.number.reports[column.codes]
    assert abs(values.mean() - 9) < 5 * column.number.scale / sqrt(4000)
    assert values.std() == pytest.approx(column.number.scale, rel=0.1)
    beyond = reported(LAPLACE, answers)
    assert beyond.number.reports.min() >= LOW
    assert beyond.number.reports.max() <= HIGH
    assert not beyond.number.exact


@pytest.mark.parametrize(
    ("bounds", "formula", "family", "code"),
    [
        ([0, 12], "hours ~ age", "logit", "fit.family_not_for_private_number"),
        ([-5, -1], "hours ~ age", "poisson", "fit.bounds_without_positive_numbers"),
        ([0, 12], "ever ~ age + I(hours**2)", None, ("formula.private_number_predictor", "hours")),
        ([0, 12], "ever ~ age + (hours | age)", None, ("formula.private_number_predictor", "hours")),
    ],
)
def test_unsuitable_analysis_of_private_number_is_rejected(bounds, formula, family, code):
    table = simulated({**LAPLACE, "bounds": [*map(str, bounds)]})
    with raises(InputError, code):
        assemble(table, formula, family=family)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("document", "family"), [(SHARP, "normal"), (SHARP, "poisson"), (GAUSSIAN, "exponential")]
)
def test_probability_of_interval_is_integral_of_density(document, family):
    """Against the integral of the likelihood's density, also beyond the bounds under Gaussian noise."""
    table = table_of(pd.DataFrame(index=range(200)), [reported(document, np.full(200, 5.0), 1)])
    found = assemble(table, "hours ~ 1", family=family)
    channel = found.response.number
    cuts = np.asarray([1.0, 4.0, 4.5, 9.0, 11.0] if channel.noise == "laplace" else [-3.0, 1.0, 9.0, 14.0])
    places, weights = leggauss(150)
    with jax.enable_x64(True):
        eta = np.asarray([[5.0 if family == "normal" else 1.3]])
        law = found.outcome.law.at(eta[..., 0], {"sigma": np.asarray([2.0])})
        shares = np.asarray(jax.jit(lambda law: channel.shares(law, cuts))(law))[0]
        log_density = jax.jit(channel.log_density)
        for place, (low, high) in enumerate(itertools.pairwise(cuts)):
            # No kink of the noise lies at a whole number inside a step of one.
            ends = np.unique([low, high, *np.arange(np.ceil(low), high)])
            total = 0.0
            for left, right in itertools.pairwise(ends):
                z = left + (right - left) * (places + 1) / 2
                density = np.exp(np.asarray(log_density(law, z)))
                total += float(np.sum(weights * density) * (right - left) / 2)
            assert shares[place + 1] == pytest.approx(total, abs=1e-7)
    assert shares.sum() == pytest.approx(1, abs=1e-12)
