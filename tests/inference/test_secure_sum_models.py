"""Posteriors of secure sums: laws match brute force; intervals are calibrated only with the noise."""

from __future__ import annotations

from itertools import pairwise

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import integrate, stats

from inference.likelihoods import ClippedExponential, ClippedNormal, clipped
from inference.likelihoods.numbers.totals import NoisyCounts, NoisyMoments, cell_masses, signed_moments
from inference.models import choice, marginals, model_for
from ldp_client import mechanism_for
from ldp_client.core.noise_levels import NOISE_BITS
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Study
from summaries import QuestionSummary
from tests.inference.simulation import (
    box,
    posterior_draws,
    seeded,
    times_covered,
    times_covered_on_grid,
    triangle,
)
from tests.secure_sum.conftest import build_study
from tests.statistics import share_is

pytestmark = pytest.mark.long_runs

STUDIES, DEVICES = 100, 1000


@pytest.fixture(autouse=True)
def exact():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("noise_sd", [0.3, 5.0])
def test_counts_have_the_dense_normal_density(noise_sd):
    theta, n = np.array([0.2, 0.5, 0.05, 0.25]), 300
    covariance = n * (np.diag(theta) - np.outer(theta, theta)) + noise_sd**2 * np.eye(4)
    value = n * theta + np.array([3.0, -4.0, 1.5, 2.0])
    expected = stats.multivariate_normal(n * theta, covariance).logpdf(value)
    assert NoisyCounts(theta, n, noise_sd).log_prob(value) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("noise_sd", [0.3, 50.0])
def test_moments_have_the_dense_normal_density(noise_sd):
    """The covariance of (u, 3/2 u²) from four moments; draws have it too."""
    moments, n = np.array([0.3, 0.25, 0.12, 0.11]), 300
    loc = n * np.array([moments[0], 1.5 * moments[1]])
    cross = 1.5 * (moments[2] - moments[0] * moments[1])
    one = [[moments[1] - moments[0] ** 2, cross], [cross, 1.5**2 * (moments[3] - moments[1] ** 2)]]
    dense = stats.multivariate_normal(loc, n * np.array(one) + noise_sd**2 * np.eye(2))
    law = NoisyMoments(moments, n, noise_sd, 1.5)
    value = loc + np.array([9.0, -4.0])
    assert law.log_prob(value) == pytest.approx(dense.logpdf(value), rel=1e-12)
    drawn = np.asarray(law.sample(jax.random.key(1), (20_000,)))
    assert np.cov(drawn.T) == pytest.approx(dense.cov, abs=0.05 * dense.cov.max())


LAWS = [
    (ClippedNormal(0.5, 0.2), stats.norm(0.5, 0.2)),
    (ClippedNormal(1.4, 0.7), stats.norm(1.4, 0.7)),
    (ClippedNormal(0.3, 0.02), stats.norm(0.3, 0.02)),
    (ClippedNormal(-0.1, 3.0), stats.norm(-0.1, 3.0)),
    (ClippedNormal(0.7, 0.002), stats.norm(0.7, 0.002)),
    (ClippedNormal(-30.0, 20.0), stats.norm(-30.0, 20.0)),
    (ClippedExponential(4.0), stats.expon(scale=0.25)),
]


@pytest.mark.parametrize(("law", "reference"), LAWS)
def test_moments_of_clipped_laws_match_quadrature(law, reference):
    def moment(k):
        inside = integrate.quad(
            lambda x: (2 * x - 1) ** k * reference.pdf(x),
            0,
            1,
            epsabs=1e-13,
            points=[reference.mean()] if 0 < reference.mean() < 1 else None,
        )[0]
        return inside + reference.sf(1) + (-1) ** k * reference.cdf(0)

    found = np.asarray(signed_moments(law))
    assert found == pytest.approx([moment(k) for k in range(1, 5)], abs=1e-7)


# Built in the test's own precision.
SINGULAR = [
    (lambda: dist.Beta(0.2, 0.2), stats.beta(0.2, 0.2)),
    (lambda: dist.Beta(0.05, 3.0), stats.beta(0.05, 3)),
    (lambda: dist.Gamma(0.2, 0.5), stats.gamma(0.2, scale=2)),
    (lambda: dist.Weibull(0.1, 0.3), stats.weibull_min(0.3, scale=0.1)),
    (lambda: dist.LogNormal(-3.0, 0.05), stats.lognorm(0.05, scale=np.exp(-3))),
    (lambda: dist.Exponential(300.0), stats.expon(scale=1 / 300)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("law", "reference"), SINGULAR)
def test_moments_of_singular_or_narrow_laws_match_quadrature(law, reference):
    """By parts, E[uᵏ] is 1 − ∫ k uᵏ⁻¹ P(U ≤ u) du: a distribution function has no singularity."""
    cuts = np.unique(np.clip([0, *reference.ppf([1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999]), 1], 0, 1))
    cuts = np.concatenate([cuts[:1], cuts[1:][np.diff(cuts) > 1e-300]])

    def moment(k):
        slope = lambda x: 2 * k * (2 * x - 1) ** (k - 1) * reference.cdf(x)  # noqa: E731
        parts = [integrate.quad(slope, *ends, limit=200, epsabs=1e-13)[0] for ends in pairwise(cuts)]
        return 1 - sum(parts)

    found = np.asarray(signed_moments(clipped(law())))
    assert found == pytest.approx([moment(k) for k in range(1, 5)], abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "reference"), LAWS)
def test_cells_of_clipped_laws_match_their_cdf(law, reference):
    edges = np.linspace(0, 1, 17)
    expected = np.diff(reference.cdf(edges))
    expected[0] += reference.cdf(0)
    expected[-1] += reference.sf(1)
    assert np.asarray(cell_masses(law, 16)) == pytest.approx(expected, abs=1e-12)


def total_of(mechanism, answers, random):
    """The sum that nodes would give: every device's exact statistic, and all their noise at once."""
    counted = {}
    for answer in answers:
        counted[repr(answer)] = (answer, counted.get(repr(answer), (answer, 0))[1] + 1)
    total = np.zeros(mechanism.size)
    for answer, times in counted.values():
        words = mechanism.noisy_vector(mechanism.quantise(answer), NotForRealAnswers(bytes))
        total += times * np.frombuffer(words, dtype="<i8")
    noise = random.normal(0, 2.0**NOISE_BITS * np.sqrt(len(answers)), mechanism.size)
    return QuestionSummary(len(answers), np.rint(total + noise).astype(np.int64))


def numbers(random, law):
    """Rounded, so that few different answers occur."""
    return list(np.round(law(random), 2).tolist())


CASES = {
    "hours": (
        lambda r: numbers(r, lambda r: r.normal(6, 2.5, DEVICES)),
        {"mean": 6.0, "sd": 2.5},
        box(100, mean=(0.4, 0.6), sd=(0.1, 0.35)),
    ),
    "wait": (
        lambda r: numbers(r, lambda r: r.exponential(4.0, DEVICES)),
        {"rate": 0.25},
        box(2000, rate=(1.5, 5.0)),
    ),
    "fruit": (
        lambda r: r.choice(["apple", "pear", "plum"], DEVICES, p=[0.15, 0.6, 0.25]).tolist(),
        {"p[apple]": 0.15, "p[pear]": 0.6, "p[plum]": 0.25},
        triangle(100),
    ),
    "ever": (lambda r: (r.random(DEVICES) < 0.3).tolist(), {"p": 0.3}, box(2000, p=(0.05, 0.7))),
}


def covered(name, epsilon="1"):
    draw, truth, grid = CASES[name]
    document = build_study(name, devices=DEVICES, max_faulty=50).document
    asked = document["questions"][0]
    stated = {**asked, "mechanism": {**asked["mechanism"], "epsilon": epsilon}}
    question = Study({**document, "questions": [stated]}).questions[0]
    mechanism = mechanism_for(question)
    generators = np.random.default_rng(20261121).spawn(STUDIES)
    models = [model_for(question, total_of(mechanism, draw(one), one)) for one in generators]
    return times_covered_on_grid(models, grid, truth)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_intervals_have_their_stated_coverage(name):
    found = covered(name)
    assert all(share_is(times, STUDIES, 0.9) for times in found.values()), found


# Bounds that cut one field on both sides, and are far too wide for the other.
FIELDS = {"age": ("0", "10"), "rate": ("-20", "20")}
SPREAD = {"mean[age]": 7.0, "sd[age]": 4.0, "mean[rate]": 1.0, "sd[rate]": 3.0}
FEWER, SOUND, FAULTY = 250, 40, 20


def marginals_study(epsilon="0.5"):
    document = build_study("spread", devices=FEWER, max_faulty=10).document
    asked = document["questions"][0]
    feature, response = ({"id": name, "bounds": list(bounds)} for name, bounds in FIELDS.items())
    stated = {**asked["mechanism"], "epsilon": epsilon}
    question = {**asked, "features": [feature], "response": response, "mechanism": stated}
    return Study({**document, "questions": [question]})


def device_sum(mechanism, random):
    """The sum of what so many devices really compute, as the nodes would find it."""
    age, rate = random.normal(7, 4, FEWER), random.normal(1, 3, FEWER)
    records = [{"age": a, "rate": r} for a, r in zip(age.tolist(), rate.tolist())]
    source = seeded(records)
    payloads = [mechanism.noisy_vector(mechanism.quantise(record), source) for record in records]
    return QuestionSummary(FEWER, np.frombuffer(b"".join(payloads), "<i8").reshape(FEWER, -1).sum(axis=0))


@pytest.fixture(scope="module")
def marginal_sums():
    question = marginals_study().questions[0]
    mechanism = mechanism_for(question)
    generators = np.random.default_rng(20261122).spawn(SOUND)
    return [device_sum(mechanism, random) for random in generators]


def covered_marginals(sums, question):
    return times_covered(posterior_draws([model_for(question, one) for one in sums]), SPREAD)


@pytest.mark.slow
def test_marginal_means_and_sds_have_stated_coverage(marginal_sums):
    """Clipping and noise are both in the likelihood: an sd of 4 between bounds 10 apart is found."""
    found = covered_marginals(marginal_sums[:SOUND], marginals_study().questions[0])
    assert all(share_is(times, SOUND, 0.9) for times in found.values()), found


@pytest.mark.slow
def test_ignoring_clipping_of_marginals_breaks_coverage(marginal_sums, monkeypatch):
    monkeypatch.setattr(marginals, "signed_moments", unclipped_moments)
    found = covered_marginals(marginal_sums[:FAULTY], marginals_study().questions[0])
    assert not all(share_is(times, FAULTY, 0.9) for times in found.values()), found


def unclipped_moments(law):
    """As if nobody were beyond the bounds: a normal's own four moments."""
    mean, sd = law.loc, law.scale
    raw = [mean, mean**2 + sd**2, mean**3 + 3 * mean * sd**2, mean**4 + 6 * mean**2 * sd**2 + 3 * sd**4]
    return jax.numpy.stack(raw, -1)


@pytest.mark.slow
def test_ignoring_the_noise_breaks_coverage(monkeypatch):
    honest = choice.total_of

    def naive(mechanism, summary):
        n, noise_sd, values = honest(mechanism, summary)
        return n, noise_sd / 100, values

    monkeypatch.setattr(choice, "total_of", naive)
    found = covered("ever", epsilon="0.2")
    assert not all(share_is(times, STUDIES, 0.9) for times in found.values()), found
