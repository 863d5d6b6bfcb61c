"""DDPLR's methods agree with quadrature, or with chains that had converged; planted faults do not."""

from dataclasses import replace

import numpy as np
import pytest
from numpyro.diagnostics import effective_sample_size

from benchmarks.papers import ada_ssp, mcmc_bs
from inference.published import fixed_grams, mcmc_normalx
from inference.published.base import Kernel, Run, run_kernel
from inference.published.given_grams import released
from tests.inference.published.ddplr_cases import CASES, prior_of, reference, statistics_of

FEW = Run(seed=1, warmup=1000, kept=1000, thin=2)
MANY = Run(seed=1, warmup=1500, kept=1000, thin=5)


def moments(kernel, statistics, prior, run):
    """Means, standard deviations and effective draws of (θ, σ²), (3, q + 1)."""
    sites = run_kernel(kernel, released(statistics, prior, run.warmup), run).sites
    draws = np.concatenate([sites["theta"], sites["variance"][..., None]], -1)
    effective = [effective_sample_size(draws[..., k]) for k in range(draws.shape[-1])]
    return np.array([draws.mean((0, 1)), draws.std((0, 1)), effective])


def far(found, expected):
    """How many combined Monte Carlo errors the means and standard deviations are apart at most."""
    mean, sd, effective = found
    true_mean, true_sd, mcse = expected
    means = np.abs(mean - true_mean) / np.hypot(sd / np.sqrt(effective), mcse)
    # An estimated standard deviation is off by sd / √(2 effective) for a normal posterior.
    sds = np.abs(sd - true_sd) / np.hypot(sd / np.sqrt(effective), mcse)
    return max(means.max(), sds.max())


def with_wrong_noise(statistics):
    """A planted fault: the noise is taken to be half as wide as it is."""
    return replace(statistics, noise=statistics.noise / 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["c01_d1_n1e4_J1_e1", "c03_d2_n1e5_J5_e1"])
def test_mcmc_fixeds_matches_reference_posterior(name):
    statistics, prior = statistics_of(name), prior_of(name)
    assert far(moments(fixed_grams.KERNEL, statistics, prior, FEW), reference(name, "fixedS")) < 4
    wrong = moments(fixed_grams.KERNEL, with_wrong_noise(statistics), prior, FEW)
    assert far(wrong, reference(name, "fixedS")) > 8


@pytest.mark.slow
def test_mcmc_normalx_matches_reference_posterior():
    name = "c15_d1_n1e4_J3_e1"
    statistics, prior = statistics_of(name), prior_of(name)
    assert far(moments(mcmc_normalx.KERNEL, statistics, prior, MANY), reference(name, "normalX")) < 4
    wrong = moments(mcmc_normalx.KERNEL, with_wrong_noise(statistics), prior, MANY)
    assert far(wrong, reference(name, "normalX")) > 8


@pytest.mark.slow
def test_mcmc_bs_matches_reference_posterior():
    name = "c15_d1_n1e4_J3_e1"
    statistics, prior = statistics_of(name, with_squares=True), prior_of(name)
    assert far(moments(mcmc_bs.KERNEL, statistics, prior, MANY), reference(name, "BS")) < 4
    wrong = moments(mcmc_bs.KERNEL, with_wrong_noise(statistics), prior, MANY)
    assert far(wrong, reference(name, "BS")) > 8


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_bayes_fixeds_fast_matches_published_posterior(name):
    expected = CASES[name]["posterior"]["fast"]
    # The released code takes a third of the response's bound for σ² where the paper has σ.
    variance = CASES[name]["inputs"]["bound_Y"] / 3
    mean, covariance = fixed_grams.posterior(statistics_of(name), prior_of(name), variance)
    scale = np.sqrt(np.diag(np.atleast_2d(expected["theta_cov"])))
    assert (mean - expected["theta_mean"]) / scale == pytest.approx(0, abs=1e-8)
    assert covariance / np.outer(scale, scale) == pytest.approx(
        np.atleast_2d(expected["theta_cov"]) / np.outer(scale, scale), abs=1e-6
    )
    _, wrong = fixed_grams.posterior(with_wrong_noise(statistics_of(name)), prior_of(name), variance)
    assert np.diag(wrong) / scale**2 != pytest.approx(1, abs=1e-2)


def hardened(statistics):
    """Indefinite, collinear, and hardly anything but noise."""
    indefinite = statistics.sums.copy()
    indefinite[:, 0, 0] = indefinite[:, 1, 2] = indefinite[:, 2, 1] = -1e4
    collinear = statistics.sums.copy()
    collinear[:, 1], collinear[:, :, 1] = collinear[:, 0], collinear[:, :, 0]
    errors = np.random.default_rng(0).normal(size=collinear.shape) * 100 * statistics.noise[0, 0]
    yield replace(statistics, sums=indefinite)
    yield replace(statistics, sums=collinear)
    loud = statistics.sums + errors + errors.transpose(0, 2, 1)
    yield replace(statistics, sums=loud, noise=statistics.noise * 100)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "run"),
    [(fixed_grams.KERNEL, FEW), (mcmc_bs.KERNEL, FEW), (fixed_grams.draw_fast, FEW), (ada_ssp.draw, FEW)],
)
def test_hard_statistics_give_finite_draws(method, run):
    name = "c11_power_J1_e1"
    for statistics in hardened(statistics_of(name, with_squares=True)):
        if isinstance(method, Kernel):
            mean, sd, _ = moments(method, statistics, prior_of(name), run)
        else:
            sites = method(statistics, prior_of(name), run).sites
            mean, sd = sites["theta"].mean((0, 1)), sites["theta"].std((0, 1))
        assert np.isfinite(mean).all()
        assert np.isfinite(sd).all()
