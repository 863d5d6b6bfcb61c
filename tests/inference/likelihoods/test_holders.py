"""Data holders' sums against dense covariances, holder by holder; groups of them against all of them."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from likelihood_references import gaussian_moments, gradient
from scipy import stats

from inference.likelihoods.holders.groups import (
    HolderGroups,
    NoiseShape,
    grouped,
    interpolation,
    noise_shape,
    one_by_one,
)
from inference.likelihoods.holders.law import HolderEntries, HolderSums, Total, second_moments
from tests.statistics import FALSE_ALARM

D = 2
AT = [np.array([0.3, -0.2, 0.1, -1.0, 0.1, 0.4]), np.array([0.2, -0.4, 0.2, -0.6, -0.1, 0.3])]
SHAPES = ["isotropic", "entries alike, no y'y", "entries alike"]


class Case(NamedTuple):
    """Noise sds (p, p), sums (j, p, p) of counts (j,); count_sd, average and whether there is a constant."""

    noise: np.ndarray
    sums: np.ndarray
    counts: np.ndarray
    count_sd: float
    average: int
    constant: bool


def moments_at(at, constant, average):
    """M of a few parameters; the features' covariance depends on all of them."""
    root = jnp.array([[0.5, 0.0], [0.1, 0.4]]) * jnp.exp(0.1 * at[5]) + 0.1 * at[4]
    mean = 0.3 * at[3:5]
    return second_moments(
        at[:2], at[2], jnp.exp(at[3]), mean, root @ root.T, constant=constant, average=average
    )


def noise_of(kind, constant):
    p = D + 1 + constant
    scale = np.linspace(1.5, 2.5, p)
    noise = np.outer(scale, scale) * np.where(np.eye(p), 1, np.sqrt(0.5))
    if kind != "isotropic":
        noise = np.full((p, p), 4.0)
        noise[-1, -1] = np.inf if "no y'y" in kind else 4.0
    if constant:
        noise[0, 0] = 0.0
    return noise


def some_case(kind, constant, count_sd=0.0, average=1, holders=60, counts=(20, 2000)):
    """Sums far from the law, many of them indefinite."""
    rng = np.random.default_rng([holders, constant, average])
    noise = noise_of(kind, constant)
    found = np.exp(rng.uniform(*np.log(counts), holders)).round() * average
    push = 3 * rng.normal(size=(holders, *noise.shape))
    second = np.asarray(moments_at(AT[0], constant, average))
    sums = found[:, None, None] / average * second + push + np.swapaxes(push, 1, 2)
    sums[:, ~np.isfinite(noise)] = 0.0
    if constant:
        sums[:, 0, 0] = found
    return Case(noise, sums, found, count_sd, average, constant)


def fast_density(case, form):
    """The log density as a function of the parameters, and how many sums it takes."""
    shape = noise_shape(case.noise, case.constant)
    assert shape is not None
    rows, variance = case.counts / case.average, (case.count_sd / case.average) ** 2
    sums, groups = form(case.sums / np.outer(shape.scale, shape.scale), rows)
    known = {"constant": case.constant, "counted": case.count_sd > 0}

    def density(at):
        second = moments_at(at, case.constant, case.average)
        law = HolderSums(second, groups, np.full(len(groups.at), variance), shape, **known)
        return law.log_prob(sums)

    return jax.jit(density), sums.shape[:2]


def dense_density(case):
    """Straight from the definition: SciPy's normal density for each holder."""
    released = np.triu(np.isfinite(case.noise))
    released[0, 0] &= not case.constant
    pairs = np.argwhere(released)
    i, j = pairs.T

    def density(at):
        second = np.asarray(moments_at(at, case.constant, case.average))
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
    for form in (one_by_one, grouped):
        fast, _ = fast_density(case, form)
        assert float(fast(AT[1]) - fast(AT[0])) == pytest.approx(expected, rel=1e-8)


@pytest.mark.slow
def test_omitted_part_changes_the_density():
    case = some_case("entries alike", True, count_sd=9.0)
    dense = dense_density(case)
    expected = dense(AT[1]) - dense(AT[0])
    for changed in ({"count_sd": 0.0}, {"noise": noise_of("isotropic", True)}, {"average": 2}):
        fast, _ = fast_density(case._replace(**changed), one_by_one)
        assert abs(float(fast(AT[1]) - fast(AT[0])) / expected - 1) > 1e-3, changed


@pytest.mark.slow
@pytest.mark.parametrize("form", [one_by_one, grouped])
def test_gradients_match_finite_differences(form):
    case = some_case("entries alike, no y'y", True, count_sd=9.0)
    fast, _ = fast_density(case, form)
    np.testing.assert_allclose(jax.grad(fast)(AT[1]), gradient(fast, AT[1]), rtol=1e-7)


@pytest.mark.slow
def test_hessians_match_finite_differences():
    fast, _ = fast_density(some_case("isotropic", True), one_by_one)
    slope = jax.jit(jax.grad(fast))
    for index, row in enumerate(jax.jit(jax.hessian(fast))(AT[1])):
        expected = gradient(lambda at, index=index: slope(at)[index], AT[1])
        np.testing.assert_allclose(row, expected, rtol=1e-6, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("counts", "nodes"), [((100, 100), 1), ((10, 100_000), 32)])
def test_thousands_of_holders_reduce_to_few_sums(counts, nodes):
    case = some_case("isotropic", True, 5.0, holders=4000, counts=counts)
    whole, _ = fast_density(case, one_by_one)
    few, (groups, sums) = fast_density(case, grouped)
    assert groups <= nodes
    assert sums <= 11
    for at in AT:
        assert float(few(at)) == pytest.approx(float(whole(at)), rel=1e-8)
        np.testing.assert_allclose(jax.grad(few)(at), jax.grad(whole)(at), rtol=1e-7)


def test_few_holders_are_not_grouped():
    _, shape = fast_density(some_case("isotropic", True, holders=10), grouped)
    assert shape == (10, 1)


@pytest.mark.parametrize("counts", [(7, 7), (3, 40), (1, 1e6)])
def test_interpolated_functions_are_right_between_the_nodes(counts):
    records = np.exp(np.random.default_rng(1).uniform(*np.log(counts), 3000)).round()
    nodes, shares = interpolation(records)
    np.testing.assert_allclose(shares.sum(axis=0), 1, atol=1e-7)
    assert np.abs(shares).max() < 20
    for rate in np.logspace(-9, 3, 40):
        precision = 1 / (1 + rate * nodes)
        np.testing.assert_allclose(precision @ shares, 1 / (1 + rate * records), rtol=2e-7)
        np.testing.assert_allclose(np.log1p(rate * nodes) @ shares, np.log1p(rate * records), atol=1e-7)


def test_covariance_of_sums_of_k_records_is_exact():
    """Rows u = sum over k of (1, x, y) / sqrt k: normal, mean sqrt k times that of one."""
    second = np.asarray(moments_at(AT[0], True, 5))
    plain = np.asarray(moments_at(AT[0], True, 1))
    mean = plain[0]
    covariance = plain - np.outer(mean, mean)
    expected_mean, expected = gaussian_moments(np.sqrt(5) * mean, covariance)
    pairs = np.array([(i, j) for i in range(4) for j in range(i, 4)])
    weights = np.where(pairs[:, 0] == pairs[:, 1], 1, np.sqrt(2))
    law = HolderEntries(second, np.ones(1), np.zeros(1), np.zeros((1, 10)), pairs, constant=True)
    np.testing.assert_allclose(second[pairs[:, 0], pairs[:, 1]] * weights, expected_mean, atol=1e-12)
    found = np.asarray(law.covariance_of_one) * np.outer(weights, weights)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("constant", [False, True])
def test_entries_and_sums_have_the_same_density(constant):
    case = some_case("isotropic", constant, 4.0)
    released = np.triu(np.ones_like(case.noise, bool))
    released[0, 0] &= not constant
    pairs = np.argwhere(released)
    i, j = pairs.T

    def density(at):
        variance = np.broadcast_to(case.noise[i, j] ** 2, (60, len(pairs)))
        second = moments_at(at, constant, 1)
        law = HolderEntries(second, case.counts, np.full(60, 16.0), variance, pairs, constant=constant)
        return jnp.sum(law.log_prob(case.sums[:, i, j]))

    dense = dense_density(case)
    assert float(density(AT[1])) == pytest.approx(
        dense(AT[1]) + 30 * len(pairs) * np.log(2 * np.pi), rel=1e-10
    )


def test_only_noise_of_known_shape_is_recognised():
    noise = noise_of("isotropic", False)
    found = noise_shape(noise, constant=False)
    assert found is not None
    assert found.places == ()
    np.testing.assert_allclose(found.scale, np.linspace(1.5, 2.5, 3))
    four = noise_of("isotropic", True)
    four[1, 2] = four[2, 1] = 1.1 * four[1, 2]
    assert noise_shape(four, constant=True) is None
    four[1, 2] = four[2, 1] = np.inf
    assert noise_shape(four, constant=True) is None


def test_noise_of_one_feature_without_constant_is_recognised():
    noise = np.array([[4.0, 3.0], [3.0, np.inf]])
    found = noise_shape(noise, constant=False)
    assert found is not None
    assert found.places == (1,)
    assert found.scale[0] * found.scale[1] == pytest.approx(3 * np.sqrt(2))


@pytest.mark.slow
@pytest.mark.parametrize("constant", [False, True])
def test_totals_have_the_moments_of_all_holders(constant):
    case = some_case("isotropic", constant, holders=3)
    second = moments_at(AT[0], constant, 1)
    variance = 3 * case.noise**2
    total = Total(case.sums.sum(axis=0), case.counts.sum(), 30.0, variance)
    nothing = HolderGroups(*np.zeros((4, 0)))
    shape = NoiseShape(np.ones(len(second)), (), np.zeros(0))
    law = HolderSums(second, nothing, np.zeros(0), shape, constant=constant, counted=True, total=total)
    draws = np.asarray(jax.vmap(law.draw_total)(jax.random.split(jax.random.key(1), 20_000)))
    pairs = np.argwhere(np.triu(np.ones_like(case.noise)))
    entries = HolderEntries(second, [1.0], [0.0], np.zeros((1, len(pairs))), pairs, constant=constant)
    mean = np.asarray(second)[pairs[:, 0], pairs[:, 1]]
    covariance = case.counts.sum() * np.asarray(entries.covariance_of_one) + 30.0 * np.outer(mean, mean)
    covariance += np.diag(variance[pairs[:, 0], pairs[:, 1]])
    first = int(constant)
    centred = (draws - case.counts.sum() * mean)[:, first:]
    white = np.linalg.solve(np.linalg.cholesky(covariance[first:, first:]), centred.T).T
    assert stats.kstest((white**2).sum(axis=1), stats.chi2(white.shape[1]).cdf).pvalue > FALSE_ALARM
    assert np.abs(white.mean(axis=0)).max() < 6 / np.sqrt(20_000)
