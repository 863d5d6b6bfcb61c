"""Perturbed records: against the joint normal law written out, and integrals over the private record."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from likelihood_references import FALSE_ALARM, gradient
from scipy import special, stats

from inference.likelihoods import PerturbedLinearRecords, PerturbedLogisticRecords
from inference.likelihoods.common import summed_in_chunks
from inference.likelihoods.regression.sigmoid import expected_sigmoid, expected_sigmoids

MEAN, COVARIANCE = np.array([0.2, -0.1]), np.array([[0.3, 0.1], [0.1, 0.2]])
SLOPES, INTERCEPT, SD = np.array([1.5, -0.7]), 0.3, 0.4
SDS = (1e-3, 1.7, 1.99, 2.01, 6.0, 100.0)


def sigmoid_mean(loc, sd):
    """E sigmoid(t) = integral of sigmoid'(s) P(t > s) ds, in panels of an eighth of both widths."""
    x, w = np.polynomial.legendre.leggauss(20)
    cuts = np.unique(np.clip([*np.linspace(-60, 60, 481), *(loc + sd * np.linspace(-9, 9, 145))], -60, 60))
    left, width = cuts[:-1, None], np.diff(cuts)[:, None]
    s = left + width * (x + 1) / 2
    return np.sum(width * w / 2 * special.expit(s) * special.expit(-s) * special.ndtr((loc - s) / sd))


def locs(sd):
    return np.array([0.0, 0.77, -3.3, 15.0, 3 * sd, -1.234 * sd])


def worst(rule, sd):
    found = np.asarray(rule(jnp.asarray(locs(sd)), jnp.asarray(sd**2)))
    return float(np.max(np.abs(found - [sigmoid_mean(loc, sd) for loc in locs(sd)])))


@pytest.mark.slow
@pytest.mark.parametrize("sd", SDS)
def test_expected_sigmoid_is_accurate_for_any_predictor_sd(sd):
    assert worst(expected_sigmoid, sd) < 1e-10
    assert worst(jax.jit(expected_sigmoids), sd) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("sd", [0.5, 2.5, 40.0])
def test_slopes_of_expected_sigmoid_match_finite_differences(sd):
    at = np.array([0.8, 0.9])

    def total(x):
        return expected_sigmoid(jnp.asarray(x[:1]) * sd, jnp.asarray(x[1:]) * sd**2).sum()

    def from_table(x):
        return expected_sigmoids(jnp.asarray(x[:1]) * sd, jnp.asarray(x[1]) * sd**2).sum()

    expected = gradient(lambda x: float(total(x)), at)
    np.testing.assert_allclose(jax.grad(total)(jnp.asarray(at)), expected, atol=1e-9)
    np.testing.assert_allclose(jax.grad(from_table)(jnp.asarray(at)), expected, atol=1e-7)


def linear(**changes):
    arguments = {"feature_noise_sd": 0.8, "response_noise_sd": 1.1, "total_count": 50, **changes}
    return PerturbedLinearRecords(SLOPES, INTERCEPT, SD, MEAN, COVARIANCE, **arguments)


def moments(z):
    v = np.column_stack([np.ones(len(z)), z])
    return v.T @ v


def joint_law(feature_noise_sd=0.8, response_noise_sd=1.1):
    """Mean and covariance of z = (x, y) + noise, by the linear map from (x, residual, noises)."""
    maps = np.array([[1, 0, 0], [0, 1, 0], [*SLOPES, 1]])
    private = np.zeros((3, 3))
    private[:2, :2], private[2, 2] = COVARIANCE, SD**2
    noise = np.diag([feature_noise_sd**2] * 2 + [response_noise_sd**2])
    return np.append(MEAN, INTERCEPT + SLOPES @ MEAN), maps @ private @ maps.T + noise


def test_linear_records_match_the_joint_normal_density():
    mean, covariance = joint_law()
    z = np.random.default_rng(1).multivariate_normal(mean, covariance, 50)
    expected = stats.multivariate_normal(mean, covariance).logpdf(z).sum()
    assert float(linear().log_prob(moments(z))) == pytest.approx(expected, rel=1e-12)
    wrong = linear(feature_noise_sd=0.81).log_prob(moments(z))
    assert abs(float(wrong) - expected) > 1e-3


def test_groups_of_linear_records_evaluate_as_one_batch():
    z = np.random.default_rng(2).normal(size=(2, 30, 3))
    sums, noise, n = np.stack([moments(part) for part in z]), np.array([0.5, 2.0]), np.array([30, 30])
    together = linear(feature_noise_sd=noise, response_noise_sd=noise, total_count=n)
    alone = [
        float(linear(feature_noise_sd=s, response_noise_sd=s, total_count=30).log_prob(total))
        for s, total in zip(noise, sums, strict=True)
    ]
    assert together.batch_shape == (2,)
    np.testing.assert_allclose(together.log_prob(sums), alone, rtol=1e-12)


def test_log_likelihood_is_zero_without_records():
    assert float(linear(total_count=0).log_prob(np.zeros((4, 4)))) == 0


def logistic(**changes):
    arguments = {"feature_noise_sd": 0.8, "p": 0.7, "q": 0.3, **changes}
    return PerturbedLogisticRecords(SLOPES, INTERCEPT, MEAN, COVARIANCE, **arguments)


def logistic_density(z, told, noise_sd, p, q):
    """By Gauss-Hermite with 60 × 60 nodes over the private features, whose predictor is narrow here."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    u, v = np.meshgrid(nodes, nodes)
    x = MEAN + np.stack([u.ravel(), v.ravel()], -1) @ np.linalg.cholesky(COVARIANCE).T
    w = np.outer(weights, weights).ravel() / weights.sum() ** 2
    yes = q + (p - q) * special.expit(INTERCEPT + x @ SLOPES)
    near = stats.multivariate_normal(np.zeros(2), noise_sd**2 * np.eye(2)).pdf(z - x)
    return w @ (near * (yes if told else 1 - yes))


REPORTS = np.array([[0.3, -0.2, 1.0], [0.3, -0.2, 0.0], [-2.0, 1.5, 1.0], [3.0, -3.0, 0.0]])


@pytest.mark.slow
def test_logistic_records_match_integrals_over_private_record():
    expected = [logistic_density(row[:2], row[2] == 1, 0.8, 0.7, 0.3) for row in REPORTS]
    np.testing.assert_allclose(np.exp(logistic().log_prob(REPORTS)), expected, rtol=1e-7)


@pytest.mark.slow
def test_each_record_may_have_its_own_budget():
    noise, p = np.array([0.5, 0.8, 1.0, 2.0]), np.array([0.6, 0.7, 0.8, 0.9])
    together = logistic(feature_noise_sd=noise, p=p, q=1 - p).log_prob(REPORTS)
    alone = [
        float(logistic(feature_noise_sd=s, p=a, q=1 - a).log_prob(row))
        for s, a, row in zip(noise, p, REPORTS, strict=True)
    ]
    np.testing.assert_allclose(together, alone, atol=1e-8)


def test_samples_follow_the_density():
    draws = np.asarray(logistic().sample(jax.random.key(3), (200_000,)))
    told = np.mean(draws[:, 2])
    sd = np.sqrt(SLOPES @ COVARIANCE @ SLOPES)
    share = 0.3 + 0.4 * sigmoid_mean(INTERCEPT + SLOPES @ MEAN, sd)
    assert stats.binomtest(int(draws[:, 2].sum()), len(draws), share).pvalue > FALSE_ALARM
    assert abs(told - 0.5) > 0.02
    sums = np.asarray(linear(total_count=20_000).sample(jax.random.key(5)))
    mean, covariance = joint_law()
    expected = 20_000 * np.outer(np.append(1, mean), np.append(1, mean))
    expected[1:, 1:] += 20_000 * covariance
    assert sums / 20_000 == pytest.approx(expected / 20_000, abs=0.1)


def test_drawn_sums_have_the_law_of_summed_reports():
    """Mean and sd of each entry over 4,000 sums of six reports, drawn at once and report by report."""
    few, many = 6, 4000
    with jax.enable_x64(True):
        at_once = np.asarray(jax.jit(lambda n: linear(total_count=n).sample(jax.random.key(6), (many,)))(few))
    mean, covariance = joint_law()
    reports = np.random.default_rng(6).multivariate_normal(mean, covariance, (many, few))
    rows = np.concatenate([np.ones((many, few, 1)), reports], -1)
    one_by_one = np.einsum("mni,mnj->mij", rows, rows)
    sd = one_by_one.std(0)
    away = np.abs(at_once.mean(0) - one_by_one.mean(0)) / np.where(sd > 0, sd, 1)
    assert away.max() < 5 * np.sqrt(2 / many)
    assert at_once.std(0) == pytest.approx(sd, rel=0.15)
    # All entries are moments of the same reports.
    assert np.linalg.eigvalsh(at_once).min() > -1e-6


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e3])
def test_density_and_slope_are_finite_however_steep_the_line(size):
    def log_prob(slopes):
        law = PerturbedLogisticRecords(
            slopes, INTERCEPT, MEAN, COVARIANCE, feature_noise_sd=30.0, p=0.51, q=0.49
        )
        return law.log_prob(100 * REPORTS).sum()

    value, slope = jax.value_and_grad(log_prob)(size * jnp.asarray(SLOPES))
    assert np.isfinite(value)
    assert np.all(np.isfinite(slope))


@pytest.mark.slow
def test_float32_is_finite_far_out_in_the_tails():
    """Steep and flat lines, narrow and wide noise, records far outside what the law expects."""
    with jax.enable_x64(False):
        records = jnp.asarray(np.vstack([REPORTS, 1e3 * REPORTS, 0 * REPORTS]), jnp.float32)
        total = jnp.asarray(moments(np.asarray(records)), jnp.float32)

        def both(slopes, sd, noise):
            arguments = (INTERCEPT, jnp.float32(MEAN), jnp.float32(COVARIANCE))
            line = PerturbedLogisticRecords(
                slopes, *arguments, feature_noise_sd=noise, p=0.51, q=0.49, validate_args=False
            )
            sums = PerturbedLinearRecords(
                slopes,
                INTERCEPT,
                sd,
                *arguments[1:],
                feature_noise_sd=noise,
                response_noise_sd=noise,
                total_count=len(records),
                validate_args=False,
            )
            return jnp.stack([line.log_prob(records).sum(), sums.log_prob(total)])

        one = jax.jit(lambda *at: (both(*at), jax.jacrev(both, (0, 1))(*at)))
        for size in (1e-6, 1.0, 1e3):
            for sd in (1e-3, 1.0, 1e3):
                for noise in (0.05, 30.0, 3e3):
                    value, slopes = one(jnp.asarray(size * SLOPES, jnp.float32), *jnp.float32([sd, noise]))
                    assert value.dtype == jnp.float32
                    assert np.isfinite(value).all(), (size, sd, noise)
                    assert all(np.isfinite(slope).all() for slope in slopes), (size, sd, noise)


@pytest.fixture
def kept_nowhere():
    """A program that comes from the disk does not say what memory it needs."""
    name = "jax_persistent_cache_min_compile_time_secs"
    before = jax.config.values[name]
    jax.config.update(name, 1e9)
    yield
    jax.config.update(name, before)


@pytest.mark.usefixtures("kept_nowhere")
def test_density_and_slope_in_chunks_equal_those_at_once():
    """Chunks need less than half of the memory, whatever n is."""
    rows = np.column_stack([np.random.default_rng(1).normal(0, 2, (400_003, 2)), np.arange(400_003) % 3 == 0])

    def at_once(slopes):
        law = PerturbedLogisticRecords(
            slopes, INTERCEPT, MEAN, COVARIANCE, feature_noise_sd=0.8, p=0.7, q=0.3, validate_args=False
        )
        return law.log_prob(rows).sum()

    def in_chunks(slopes, chunk=1 << 12):
        law = PerturbedLogisticRecords(
            slopes, INTERCEPT, MEAN, COVARIANCE, feature_noise_sd=0.8, p=0.7, q=0.3, validate_args=False
        )
        return summed_in_chunks(law._density(), jnp.asarray(rows), chunk)

    with jax.enable_x64(True):
        slopes, programs = jnp.asarray(SLOPES), []
        found = []
        for function in (at_once, in_chunks):
            compiled = jax.jit(jax.value_and_grad(function)).lower(slopes).compile()
            programs.append(compiled.memory_analysis().temp_size_in_bytes)
            found.append(compiled(slopes))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-12)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-12)
    assert programs[1] < programs[0] / 2
