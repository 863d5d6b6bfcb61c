"""Perturbed numbers of any law under both noises, against integrals over the law's cdf, and sums."""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from likelihood_references import FALSE_ALARM, derivative
from scipy import special, stats

from inference.likelihoods import (
    BinnedPerturbed,
    ClippedContinuous,
    ClippedDiscrete,
    ClippedExponential,
    ClippedNormal,
    GaussianNoise,
    LaplaceNoise,
    Perturbed,
    clipped,
)

NOISES = {"laplace": LaplaceNoise, "gaussian": GaussianNoise}
REPORTS = np.array([-2.5, -0.1, 0.003, 0.2, 0.2137, 0.55, 0.997, 1.4])


class Mixture:
    """0.3 N(0.2, 0.02) + 0.7 N(0.8, 0.1)."""

    def cdf(self, x):
        return 0.3 * special.ndtr((x - 0.2) / 0.02) + 0.7 * special.ndtr((x - 0.8) / 0.1)


def mixture():
    parts = dist.Normal(jnp.array([0.2, 0.8]), jnp.array([0.02, 0.1]))
    return dist.MixtureSameFamily(dist.Categorical(probs=jnp.array([0.3, 0.7])), parts)


# name: (NumPyro law, SciPy's, accuracy of the likelihood)
LAWS = {
    "normal": (lambda: dist.Normal(0.4, 0.07), stats.norm(0.4, 0.07), 1e-10),
    "exponential": (lambda: dist.Exponential(6.0), stats.expon(scale=1 / 6), 1e-10),
    "log-normal": (lambda: dist.LogNormal(-1.0, 0.5), stats.lognorm(0.5, scale=np.exp(-1)), 1e-9),
    "log-normal beyond": (lambda: dist.LogNormal(3.0, 0.05), stats.lognorm(0.05, scale=np.exp(3)), 1e-9),
    "gamma": (lambda: dist.Gamma(20.0, 50.0), stats.gamma(20, scale=1 / 50), 1e-9),
    "gamma singular": (lambda: dist.Gamma(0.3, 3.0), stats.gamma(0.3, scale=1 / 3), 1e-8),
    "gamma very singular": (lambda: dist.Gamma(0.05, 1.0), stats.gamma(0.05), 1e-8),
    "weibull": (lambda: dist.Weibull(0.5, 0.7), stats.weibull_min(0.7, scale=0.5), 1e-8),
    "beta": (lambda: dist.Beta(2.0, 3.0), stats.beta(2, 3), 1e-9),
    "beta singular": (lambda: dist.Beta(0.2, 0.4), stats.beta(0.2, 0.4), 1e-8),
    "student": (lambda: dist.StudentT(3.0, 0.3, 0.2), stats.t(3, 0.3, 0.2), 1e-9),
    "uniform": (lambda: dist.Uniform(0.2, 0.7), stats.uniform(0.2, 0.5), 1e-8),
    "mixture": (mixture, Mixture(), 1e-8),
}


@pytest.mark.parametrize(
    "law",
    [
        dist.Delta(0.4),
        dist.MixtureGeneral(
            dist.Categorical(probs=jnp.array([0.3, 0.7])),
            [dist.Delta(0.0), dist.Normal(0.0, 1.0)],
            support=dist.constraints.real,
        ),
        dist.TransformedDistribution(dist.Delta(0.4), dist.transforms.AffineTransform(0.1, 0.5)),
        dist.Delta(jnp.zeros(2)).mask(True),
    ],
    ids=["delta", "mixture", "transformed", "masked"],
)
def test_law_with_point_mass_is_rejected(law):
    """Before, its density was infinite at one report and zero or NaN at others."""
    with pytest.raises(ValueError, match="has a mass at a point"):
        Perturbed(law, (0.0, 1.0), LaplaceNoise(1.0))


def kernel(name, scale):
    """Density and cdf of the noise."""
    if name == "gaussian":
        return stats.norm(0, scale).pdf, stats.norm(0, scale).cdf
    return stats.laplace(0, scale).pdf, stats.laplace(0, scale).cdf


def reference_cdf(law, at, noise, scale):
    """P(clip(X, 0, 1) + noise <= z) = K(z - 1) + integral of F_X(x) k(z - x) dx, and F is bounded."""
    density, cdf = kernel(noise, scale)
    x, w = np.polynomial.legendre.leggauss(16)
    ends = 10.0 ** np.arange(-40, -1, 0.5)
    found = []
    for z in at:
        cuts = np.unique(np.clip([*np.linspace(0, 1, 401), *ends, *(1 - ends), z], 0, 1))
        left, width = cuts[:-1, None], np.diff(cuts)[:, None]
        nodes = left + width * (x + 1) / 2
        found.append(cdf(z - 1) + np.sum(width * w / 2 * law.cdf(nodes) * density(z - nodes)))
    return np.array(found)


def density_of(base, noise, scale, at):
    law = Perturbed(base, (0.0, 1.0), NOISES[noise](scale))
    return np.exp(np.asarray(jax.jit(law.log_prob)(jnp.asarray(at))))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "noise"),
    [
        *((name, "laplace") for name in LAWS),
        *((name, "gaussian") for name in ("normal", "exponential", "gamma", "beta singular")),
    ],
)
def test_cell_probabilities_match_integrals(name, noise):
    build, law, accuracy = LAWS[name]
    scale, reach, count = (1.0, 0.01, 256) if noise == "laplace" else (0.1, 0.6, 5)
    edges = np.linspace(-reach, 1 + reach, count + 1)
    probs = jax.jit(lambda: NOISES[noise](scale).cell_probs(clipped(build()), edges))()
    some = np.linspace(0, count, 6).astype(int)
    expected = reference_cdf(law, edges[some], noise, scale)
    np.testing.assert_allclose(np.cumsum(probs)[some], expected, atol=accuracy)
    assert float(probs.sum()) == pytest.approx(1, abs=accuracy)
    assert np.all(np.asarray(probs) > 0)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    "name", ["normal", "exponential", "log-normal", "gamma singular", "beta singular", "mixture"]
)
def test_densities_of_reports_are_the_derivative_of_the_cdf(name, noise):
    """Away from the kinks that Laplace noise puts at the bounds and at no other place."""
    build, law, _ = LAWS[name]
    step = 4e-3
    scale, at = 0.2, np.array([-0.3, 0.3, 0.62, 1.3])
    shifts = step * np.arange(-4, 5)
    table = np.array([reference_cdf(law, z + shifts, noise, scale) for z in at])
    slopes = np.array([derivative(lambda t, row=row: row[4 + round(t / step)], step) for row in table])
    np.testing.assert_allclose(density_of(build(), noise, scale, at), slopes, rtol=3e-6)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_closed_forms_and_quadrature_agree(noise):
    for base, scale in product([dist.Normal(0.4, 0.07), dist.Exponential(6.0)], [1.0, 0.05]):
        closed = density_of(base, noise, scale, REPORTS)
        quadrature = density_of(ClippedContinuous(base), noise, scale, REPORTS)
        np.testing.assert_allclose(quadrature, closed, rtol=1e-8, atol=1e-9 * closed.max())


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_too_narrow_law_gains_no_likelihood_from_quadrature(noise):
    """Answers are nearly equal: a law whose mass quadrature overstates is no likelier for that."""
    edges = np.linspace(-2.0, 3.0, 400)
    counts = _rounded(ClippedNormal(0.5, 0.002), NOISES[noise](0.3), edges)

    def log_prob(base):
        return BinnedPerturbed(base, NOISES[noise](0.3), edges, counts.sum()).log_prob(counts)

    best = log_prob(ClippedNormal(0.5, 0.002))
    narrow = jax.jit(lambda mean: log_prob(clipped(dist.LogNormal(jnp.log(mean), 3e-4 / mean))))
    for mean in np.linspace(0.5, 0.502, 9):
        assert narrow(mean) < best + 2


def _rounded(base, noise, edges):
    """Expected counts of a million reports."""
    return np.rint(1e6 * np.asarray(BinnedPerturbed(base, noise, edges, 1).cell_probs)).astype(int)


def test_wrong_law_changes_the_density():
    right = density_of(dist.Normal(0.4, 0.07), "gaussian", 0.2, REPORTS)
    for wrong in [dist.Normal(0.4, 0.0701), dist.Normal(0.4001, 0.07)]:
        assert np.max(np.abs(density_of(wrong, "gaussian", 0.2, REPORTS) / right - 1)) > 1e-5


WHOLE = {
    "poisson": (lambda: dist.Poisson(3.0), stats.poisson(3)),
    "poisson beyond": (lambda: dist.Poisson(1000.0), stats.poisson(1000)),
    "geometric": (lambda: dist.GeometricProbs(0.2), stats.geom(0.2, loc=-1)),
    "zero-inflated": (lambda: dist.ZeroInflatedPoisson(0.4, 2.0), None),
}


def masses_on_whole_numbers(name, low, high):
    inner = np.arange(low + 1, high)
    if name == "zero-inflated":
        law = stats.poisson(2)
        share = lambda x: 0.4 * (x >= 0) + 0.6 * law.cdf(x)  # noqa: E731
        return np.concatenate([[share(low)], 0.6 * law.pmf(inner), [1 - share(high - 1)]])
    law = WHOLE[name][1]
    return np.concatenate([[law.cdf(low)], law.pmf(inner), [law.sf(high - 1)]])


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", WHOLE)
def test_laws_of_whole_numbers_match_finite_sums(name, noise):
    low, high = 1, 8
    base = ClippedDiscrete(WHOLE[name][0](), low, high)
    at, masses = np.arange(low, high + 1), masses_on_whole_numbers(name, low, high)
    density, cdf = kernel(noise, 3.0)
    z = np.array([-20.0, 1.0, 2.6, 8.0, 30.0])
    law = Perturbed(base, (low, high), NOISES[noise](3.0))
    np.testing.assert_allclose(np.exp(law.log_prob(z)), density(z[:, None] - at) @ masses, rtol=1e-9)
    edges = np.linspace(-9, 18, 40)
    probs = np.asarray(BinnedPerturbed(base, NOISES[noise](3.0), edges, 1).cell_probs)
    np.testing.assert_allclose(np.cumsum(probs)[:-1], cdf(edges[:, None] - at) @ masses, atol=1e-10)


@pytest.mark.slow
def test_gaussian_reports_beyond_bounds_are_informative():
    """Unlike Laplace ones: the shape of their law outside depends on the parameters."""
    edges = np.array([-2.0, -1.0, -0.5, 0.0, 1.0])
    one, other = (
        np.asarray(GaussianNoise(0.5).cell_probs(ClippedNormal(loc, 0.3), edges))[:4] for loc in (0.1, 0.8)
    )
    assert np.max(np.abs(one / one.sum() - other / other.sum())) > 0.01


def information(base_of, noise, edges):
    """Fisher information on the mean in one report, from its cell."""
    probs = lambda mean: noise.cell_probs(base_of(mean), edges)  # noqa: E731
    p, slope = jax.jit(lambda mean: jax.jvp(probs, (mean,), (1.0,)))(0.4)
    return float(jnp.sum(jnp.where(p > 1e-30, slope**2 / p, 0.0)))


@pytest.mark.slow
def test_histogram_keeps_almost_all_information():
    """Cells of a 32nd of the noise's sd, six sd beyond the bounds, against finer and wider ones."""
    base_of, noise = lambda mean: ClippedNormal(mean, 0.2), GaussianNoise(1.0)
    ours = information(base_of, noise, np.linspace(-6, 7, 13 * 32 + 1))
    fine = information(base_of, noise, np.linspace(-8, 9, 17 * 256 + 1))
    bounds_only = information(base_of, noise, np.linspace(0, 1, 33))
    assert 0 < 1 - ours / fine < 1e-4
    assert 1 - bounds_only / fine > 0.1


def tails(parameters, noise, reports):
    return Perturbed(dist.Normal(parameters[0], jnp.exp(parameters[1])), (0.0, 1.0), noise).log_prob(reports)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
@pytest.mark.parametrize("noise", NOISES)
def test_float32_is_finite_far_out_in_the_tails(noise):
    grid = np.array(list(product([-1e3, -3.0, 0.0, 0.5, 1.0, 40.0], np.log([1e-3, 0.05, 1.0, 1e3]))))
    reports = np.array([-1e3, -20.0, 0.0, 0.37, 1.0, 20.0, 1e3])
    with jax.enable_x64(False):
        for scale in (1 / 64, 1.0, 20.0):
            one = lambda p, z, s=scale: tails(p, NOISES[noise](s), z)  # noqa: E731
            each = jax.jit(jax.vmap(jax.vmap(jax.value_and_grad(one), (None, 0)), (0, None)))
            value, slope = each(jnp.asarray(grid, jnp.float32), jnp.asarray(reports, jnp.float32))
            assert value.dtype == jnp.float32
            assert np.all(np.isfinite(value))
            assert np.all(np.isfinite(slope))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
@pytest.mark.parametrize(
    ("family", "noise"),
    [
        (dist.Gamma, "laplace"),
        (dist.Weibull, "gaussian"),
        (dist.Beta, "laplace"),
        (dist.LogNormal, "gaussian"),
    ],
)
def test_float32_histograms_of_any_law_are_finite(family, noise):
    counts = np.arange(66) % 4
    edges = np.linspace(-0.01, 1.01, 65)

    def log_prob(logs):
        law = family(*(logs if family is dist.LogNormal else jnp.exp(logs)))
        return BinnedPerturbed(clipped(law), NOISES[noise](1.0), edges, counts.sum()).log_prob(counts)

    logs = [-1.5, 0.0, 3.0]
    with jax.enable_x64(False):
        at = jnp.asarray(np.array(list(product(logs, logs))), jnp.float32)
        at = at.at[:, 1].set(jnp.exp(at[:, 1]) if family is dist.LogNormal else at[:, 1])
        value, slope = jax.jit(jax.vmap(jax.value_and_grad(log_prob)))(at)
        assert np.all(np.isfinite(value))
        assert np.all(np.isfinite(slope))


@pytest.mark.slow
def test_each_report_may_have_its_own_noise():
    law = lambda base, noise, scale: Perturbed(base, (0.0, 4.0), noise(scale))  # noqa: E731
    scales = np.array([0.1, 1.0, 20.0])
    at = np.array([0.3, -0.4, 5.0])
    for base, noise in (
        (dist.Normal(0.4, 0.2), GaussianNoise),
        (dist.Gamma(2.0, 4.0), LaplaceNoise),
        (dist.Poisson(1.5), GaussianNoise),
    ):
        one = jax.jit(lambda scale, z, base=base, noise=noise: law(base, noise, scale).log_prob(z))
        assert law(base, noise, scales).batch_shape == (3,)
        np.testing.assert_allclose(one(scales, at), [one(s, z) for s, z in zip(scales, at)], rtol=1e-7)


@pytest.mark.slow
def test_groups_evaluate_as_one_batch():
    """Two groups, each with its own mean and its own noise, against one at a time."""
    groups = np.array([1.4, 2.2]), np.array([0.5, 0.9]), np.array([1.0, 2.0]), np.array([60, 70])
    for family, noise in (
        (dist.Normal, LaplaceNoise),
        (dist.Gamma, GaussianNoise),
        (dist.Weibull, LaplaceNoise),
    ):

        def law(first, second, scale, total, family=family, noise=noise):
            base = clipped(family(first, second), 0.0, 4.0)
            return BinnedPerturbed(base, noise(scale), np.linspace(-6, 10, 33), total)

        cells = jax.jit(lambda *group, law=law: law(*group).cell_probs)
        assert law(*groups).batch_shape == (2,)
        alone = [cells(*group) for group in zip(*groups)]
        np.testing.assert_allclose(cells(*groups), alone, rtol=0, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES.values())
@pytest.mark.parametrize("base", [dist.Gamma(2.0, 4.0), dist.GeometricProbs(0.6), dist.Exponential(2.0)])
def test_samples_follow_the_cells(base, noise):
    law = Perturbed(base, (0.0, 1.0), noise(0.3))
    reports = np.asarray(jax.jit(lambda key: law.sample(key, (100_000,)))(jax.random.key(4)))
    edges = np.array([-0.5, 0.0, 0.2, 0.5, 1.0, 1.5])
    counts = np.bincount(np.searchsorted(edges, reports, side="right"), minlength=7)
    cells = jax.jit(lambda scale: BinnedPerturbed(law.base, noise(scale), edges, 1).cell_probs)
    probs, wrong = np.asarray(cells(0.3)), np.asarray(cells(0.32))
    assert stats.chisquare(counts, counts.sum() * probs / probs.sum()).pvalue > FALSE_ALARM
    assert stats.chisquare(counts, counts.sum() * wrong / wrong.sum()).pvalue < FALSE_ALARM


@pytest.mark.slow
def test_marginal_matches_lemma_3_2_of_ldpbi():
    """A clipped density h(x) exp(polynomial of degree two), h a polynomial, under Gaussian noise.

    Here h = x² on [0, 1], exponent −3x + x²: its marginal in closed form, by moments of a truncated normal.
    """
    from scipy.integrate import quad

    weight = lambda x: x**2 * np.exp(-3 * x + x**2)  # noqa: E731
    total = quad(weight, 0, 1)[0]

    class PolynomialTimesKernel(dist.Distribution):
        support = dist.constraints.unit_interval

        def log_prob(self, x):
            return 2 * jnp.log(x) - 3 * x + x**2 - np.log(total)

    scale = 0.3
    # exp(−3x + x² − (z − x)²/2s²) is a normal kernel of precision 1/s² − 2, with moments on [0, 1].
    precision = 1 / scale**2 - 2
    for z in (-0.5, 0.2, 1.3):
        sd, loc = precision**-0.5, (z / scale**2 - 3) / precision
        a, b = (0 - loc) / sd, (1 - loc) / sd
        truncated = stats.truncnorm(a, b, loc, sd)
        mass = stats.norm.cdf(b) - stats.norm.cdf(a)
        kernel_total = np.exp(precision * loc**2 / 2 - z**2 / (2 * scale**2)) * sd / scale * mass
        closed = kernel_total * (truncated.var() + truncated.mean() ** 2) / total
        found = Perturbed(PolynomialTimesKernel(), (0.0, 1.0), GaussianNoise(scale)).log_prob(z)
        assert float(jnp.exp(found)) == pytest.approx(closed, rel=1e-9)


@pytest.mark.slow
def test_many_reports_are_evaluated_in_chunks(monkeypatch):
    """Memory is bounded and the densities do not change."""
    base, at = ClippedDiscrete(dist.Poisson(3.0), 0.0, 9.0), jnp.linspace(-3, 12, 1000)
    whole = Perturbed(base, (0.0, 9.0), GaussianNoise(2.0)).log_prob(at)
    monkeypatch.setattr("inference.likelihoods.numbers.noise._AT_ONCE", 500)
    np.testing.assert_allclose(
        Perturbed(base, (0.0, 9.0), GaussianNoise(2.0)).log_prob(at), whole, rtol=1e-12
    )


def test_bad_laws_are_refused():
    with pytest.raises(ValueError, match="16384 integers"):
        ClippedDiscrete(dist.Poisson(3.0), 0.0, 1e6)
    with pytest.raises(ValueError, match="not a continuous law of one number"):
        clipped(dist.Dirichlet(jnp.ones(3)))
    with pytest.raises(ValueError, match="noise scales"):
        Perturbed(dist.Normal(0.4, 0.1), (0.0, 1.0), LaplaceNoise(1e-4))


def test_mass_error_measures_mass_missed_by_quadrature():
    assert abs(float(ClippedContinuous(dist.Normal(0.5, 0.01)).mass_error)) < 1e-9
    assert abs(float(ClippedContinuous(dist.Normal(0.5, 1e-4)).mass_error)) > 1e-3
    assert isinstance(clipped(dist.Exponential(1.0)), ClippedExponential)
