"""Noisy sums of second moments against dense covariances; sigmoids against integrals."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from likelihood_references import derivative, logistic_moments, svec
from scipy import special, stats

from inference.likelihoods import perturbed_logistic_density
from inference.likelihoods.holders import HolderGroups, NoiseShape, grouped, noise_shape, one_by_one
from inference.likelihoods.regression import moments
from inference.likelihoods.regression.moments import response_moments
from inference.likelihoods.regression.records import sigmoid_table
from inference.likelihoods.regression.sums import DenseSums, NoisySums, Total

D = 2
AT = [np.array([0.3, -0.2, 0.1, -1.0, 0.1, 0.4]), np.array([0.2, -0.4, 0.2, -0.6, -0.1, 0.3])]
SHAPES = ["isotropic", "entries alike, no y'y", "entries alike"]


def features_at(at):
    """Mean and covariance, which depends on all parameters."""
    root = jnp.array([[0.5, 0.0], [0.1, 0.4]]) * jnp.exp(0.1 * at[5]) + 0.1 * at[4]
    return 0.3 * at[3:5], root @ root.T


def moments_at(at, constant=True, average=1):
    mean, covariance = features_at(at)
    return moments.linear_moments(
        at[:2], at[2], jnp.exp(at[3]), mean, covariance, constant=constant, average=average
    )


def some_case(kind, constant, count_sd=0.0, average=1, holders=60, counts=(20, 2000)):
    """Sums (j, p, p) far from the law, many of them indefinite; noise sds (p, p) and counts (j,)."""
    scale = np.linspace(1.5, 2.5, D + 1 + constant)
    noise = np.outer(scale, scale) * np.where(np.eye(len(scale)), 1, np.sqrt(0.5))
    if kind != "isotropic":
        noise = np.full(noise.shape, 4.0)
        noise[-1, -1] = np.inf if "no y'y" in kind else 4.0
    if constant:
        noise[0, 0] = 0.0
    rng = np.random.default_rng([holders, constant, average])
    found = np.exp(rng.uniform(*np.log(counts), holders)).round() * average
    push = 3 * rng.normal(size=(holders, *noise.shape))
    second = np.asarray(moments_at(AT[0], constant, average).second)
    sums = found[:, None, None] / average * second + push + np.swapaxes(push, 1, 2)
    sums[:, ~np.isfinite(noise)] = 0.0
    if constant:
        sums[:, 0, 0] = found
    own = {"noise": noise, "sums": sums, "counts": found}
    return SimpleNamespace(**own, count_sd=count_sd, average=average, constant=constant)


def fast_density(case, form):
    """The log density as a function of the parameters, and how many sums it takes."""
    shape = noise_shape(case.noise, case.constant)
    rows, variance = case.counts / case.average, (case.count_sd / case.average) ** 2
    sums, groups = form(case.sums / np.outer(shape.scale, shape.scale), rows)
    counted = np.full(len(groups.at), variance) if variance else None

    def density(at):
        own = moments_at(at, case.constant, case.average)
        return NoisySums(own, groups, shape, counted).log_prob(sums)

    return jax.jit(density), sums.shape[:2]


def entries_of(case):
    """Which entries were released with noise, (D, 2)."""
    released = np.triu(np.isfinite(case.noise))
    released[0, 0] &= not case.constant
    return np.argwhere(released)


def dense_density(case):
    """Straight from the definition: SciPy's normal density for each holder."""
    pairs = entries_of(case)
    i, j = pairs.T

    def density(at):
        second = np.asarray(moments_at(at, case.constant, case.average).second)
        covariance = second[np.ix_(i, i)] * second[np.ix_(j, j)] + second[np.ix_(i, j)] * second[np.ix_(j, i)]
        if case.constant:
            mean = second[0] / np.sqrt(second[0, 0])
            product = mean[i] * mean[j]
            covariance = covariance - 2 * np.outer(product, product)
        total = 0.0
        for sums, rows in zip(case.sums, case.counts / case.average, strict=True):
            spread = rows * covariance + np.diag(case.noise[i, j] ** 2)
            spread = spread + (case.count_sd / case.average) ** 2 * np.outer(second[i, j], second[i, j])
            total += stats.multivariate_normal.logpdf(sums[i, j], rows * second[i, j], spread)
        return total

    return density


def dense_form(case):
    pairs, rows = entries_of(case), case.counts / case.average
    variance = np.full(len(rows), (case.count_sd / case.average) ** 2)
    noise = np.broadcast_to(case.noise[tuple(pairs.T)] ** 2, (len(rows), len(pairs)))

    def density(at):
        own = moments_at(at, case.constant, case.average)
        return DenseSums(own, rows, variance, noise, pairs).log_prob(case.sums[:, *pairs.T])

    return jax.jit(density)


CASES = [
    (kind, constant, sd, k) for kind in SHAPES for constant, sd, k in ((0, 0, 1), (1, 9.0, 3), (1, 0, 1))
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "constant", "count_sd", "average"), CASES)
def test_densities_match_dense_covariances(kind, constant, count_sd, average):
    case = some_case(kind, bool(constant), count_sd, average)
    assert np.any(np.linalg.eigvalsh(case.sums)[:, 0] < 0)
    dense = dense_density(case)
    expected = dense(AT[1]) - dense(AT[0])
    for found in (fast_density(case, one_by_one)[0], fast_density(case, grouped)[0], dense_form(case)):
        assert float(found(AT[1]) - found(AT[0])) == pytest.approx(expected, rel=1e-8)


@pytest.mark.slow
def test_thousands_of_holders_reduce_to_few_sums():
    case = some_case("isotropic", True, 5.0, holders=4000, counts=(10, 100_000))
    whole, _ = fast_density(case, one_by_one)
    few, (groups, sums) = fast_density(case, grouped)
    assert groups <= 40
    assert sums <= 11
    for at in AT:
        assert float(few(at)) == pytest.approx(float(whole(at)), rel=1e-8)
        np.testing.assert_allclose(jax.grad(few)(at), jax.grad(whole)(at), rtol=1e-7)


# Logistic records, one sum of which is known where products are: u₀² and y².
N, SCALE = 50, np.array([1.6, 1.4, 1.5, 1.9])


def logistic_at(at):
    mean, covariance = features_at(at)
    return moments.logistic_moments(at[:2], at[2], mean, covariance)


def logistic_density(value, at):
    groups = HolderGroups(np.array([N]), np.ones(1), np.array([[N]]), np.ones((1, 1)))
    shape = NoiseShape(SCALE, (), np.zeros(0))
    return NoisySums(logistic_at(at), groups, shape).log_prob(value / np.outer(SCALE, SCALE))


def some_sum():
    push = 5 * np.random.default_rng(4).normal(size=(4, 4))
    value = N * np.asarray(logistic_at(AT[0]).second) + push + push.T
    value[0, 0] = value[-1, -1] = N
    return value[None, None]


@pytest.mark.parametrize("scale", [1.0, 8.0])
def test_logistic_density_matches_dense_covariance(scale):
    """Against moments by quadrature over the records; `scale` of the slopes."""
    value = some_sum()
    i, j = np.triu_indices(4)
    keep = np.flatnonzero(~((i == j) & np.isin(i, (0, 3))))
    noise = ((SCALE[i] * SCALE[j]) ** 2)[keep]
    expected, found = [], []
    for at in AT:
        at = np.append(scale * at[:2], at[2:])
        mean, covariance = logistic_moments(at[:2], at[2], *map(np.asarray, features_at(at)))
        spread = N * covariance[np.ix_(keep, keep)] + np.diag(noise)
        law = stats.multivariate_normal(N * mean[keep], spread)
        expected.append(law.logpdf(svec(value[0, 0])[keep]))
        found.append(float(logistic_density(value, at)))
    assert found[1] - found[0] == pytest.approx(expected[1] - expected[0], rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("at", [AT[0], np.zeros(6), np.append(1e-9, np.zeros(5))])
def test_gradients_match_finite_differences(at):
    case, value = some_case("entries alike", True, 9.0, holders=3), some_sum()
    for density in (fast_density(case, one_by_one)[0], jax.jit(lambda at: logistic_density(value, at))):
        found = jax.grad(density)(jnp.asarray(at))
        slopes = derivative(lambda t, of=density: np.array([float(of(at + t * unit)) for unit in np.eye(6)]))
        np.testing.assert_allclose(found, slopes, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("of_records", [moments_at, logistic_at])
def test_drawn_sums_have_their_mean_and_covariance(of_records):
    """5,000 draws, by the moments that the density has."""
    own, draws = of_records(AT[0]), 5000
    drawn = jax.vmap(lambda key: own.draw(key, 7.0))(jax.random.split(jax.random.key(1), draws))
    second, basis, weights = map(np.asarray, own)
    # The symmetric matrices whose svec vectors are the unit vectors.
    (i, j), units = np.triu_indices(4), np.zeros((10, 4, 4))
    units[range(10), i, j] = units[range(10), j, i] = np.where(i == j, 1.0, np.sqrt(0.5))
    inner = np.einsum("aij,bij->ab", units, basis)
    covariance = 7 * (
        2 * np.einsum("aij,bij->ab", units, second @ units @ second) + inner @ weights @ inner.T
    )
    values, spread = svec(np.asarray(drawn)), np.sqrt(np.diag(covariance) + 1e-12)
    assert np.abs(values.mean(axis=0) - 7 * svec(second)).max() < 5 * spread.max() / draws**0.5
    np.testing.assert_allclose(np.cov(values.T), covariance, atol=0.1 * spread.max() ** 2)


def test_total_is_drawn_with_its_noise():
    own = moments_at(AT[0])
    noise = np.full((4, 4), 400.0)
    noise[0, 0] = 0.0
    total = Total(7 * np.asarray(own.second) + 1.0, jnp.asarray(7.0), jnp.asarray(2.0), jnp.asarray(noise))
    law = DenseSums(own, np.ones(1), np.ones(1), np.ones((1, 1)), np.array([[0, 1]]), total)
    drawn = jax.vmap(law.draw_total)(jax.random.split(jax.random.key(2), 3000))
    assert not np.asarray(drawn[:, 0]).any()
    assert np.std(drawn[:, 1:], axis=0) == pytest.approx(20.0, rel=0.1)
    assert float(law.observed_total[0]) == 0.0
    assert np.mean(drawn, axis=0)[1:] == pytest.approx(np.asarray(law.observed_total)[1:] - 1, abs=2)


def sigmoid_derivatives(s):
    """2 sigmoid(s) - 1 and its first three derivatives, (4, …)."""
    g = np.tanh(s / 2)
    first = (1 - g**2) / 2
    return np.stack([g, first, -g * first, first * (g**2 - first)])


@pytest.mark.parametrize("sd", [0.0, 1.99, 2.01, 30.0])
def test_sigmoid_moments_match_integrals(sd):
    """Against 40 Gauss-Legendre nodes on each piece, no piece longer than half a unit or half an sd."""
    for loc in (0.0, -1.3, 15.0):
        if sd == 0:
            expected = sigmoid_derivatives(np.array(loc))
        else:
            pieces = int(24 * max(sd, 1.0) / min(sd, 1.0)) + 1
            at, weight = np.polynomial.legendre.leggauss(40)
            ends = np.linspace(loc - 12 * sd, loc + 12 * sd, pieces + 1)
            half = np.diff(ends)[:, None] / 2
            s, weight = (ends[:-1, None] + half * (at + 1)).ravel(), (half * weight).ravel()
            density = np.exp(-(((s - loc) / sd) ** 2) / 2) / (sd * np.sqrt(2 * np.pi))
            expected = sigmoid_derivatives(s) @ (weight * density)
        found = response_moments(jnp.array(loc), jnp.array(sd**2))
        np.testing.assert_allclose(found, expected, atol=1e-10)


def sigmoid_mean(loc, sd):
    """E sigmoid(t) = integral of sigmoid'(s) P(t > s) ds, in panels of an eighth of both widths."""
    x, w = np.polynomial.legendre.leggauss(20)
    cuts = np.unique(np.clip([*np.linspace(-60, 60, 481), *(loc + sd * np.linspace(-9, 9, 145))], -60, 60))
    left, width = cuts[:-1, None], np.diff(cuts)[:, None]
    s = left + width * (x + 1) / 2
    return np.sum(width * w / 2 * special.expit(s) * special.expit(-s) * special.ndtr((loc - s) / sd))


@pytest.mark.slow
@pytest.mark.parametrize("sd", [1e-3, 1.99, 2.01, 100.0])
def test_tabled_sigmoid_is_accurate_for_any_predictor_sd(sd):
    locs = np.array([0.0, 0.77, -3.3, 15.0, 3 * sd, -1.234 * sd])
    found = jax.jit(lambda loc, variance: sigmoid_table(variance)(loc))(jnp.asarray(locs), jnp.asarray(sd**2))
    np.testing.assert_allclose(found, [sigmoid_mean(loc, sd) for loc in locs], rtol=0, atol=1e-8)


@pytest.mark.slow
def test_logistic_records_match_integrals_over_private_record():
    """By Gauss-Hermite with 60 × 60 nodes over the private features, whose predictor is narrow here."""
    noise_sd, p, q = 0.8, 0.7, 0.3
    slopes, intercept = np.array([1.5, -0.7]), 0.3
    middle, covariance = np.array([0.2, -0.1]), np.array([[0.3, 0.1], [0.1, 0.2]])
    reports = np.array([[0.3, -0.2, 1.0], [0.3, -0.2, 0.0], [-2.0, 1.5, 1.0], [3.0, -3.0, 0.0]])
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    u, v = np.meshgrid(nodes, nodes)
    x = middle + np.stack([u.ravel(), v.ravel()], -1) @ np.linalg.cholesky(covariance).T
    w = np.outer(weights, weights).ravel() / weights.sum() ** 2
    yes = q + (p - q) * special.expit(intercept + x @ slopes)
    noise = stats.multivariate_normal(np.zeros(2), noise_sd**2 * np.eye(2))
    expected = [w @ (noise.pdf(z - x) * (yes if told else 1 - yes)) for *z, told in reports]
    density = perturbed_logistic_density(
        slopes, intercept, middle, covariance, feature_noise_sd=noise_sd, p=p, q=q
    )
    np.testing.assert_allclose(np.exp(density(reports)), expected, rtol=1e-7)
