"""Data holders' sums against dense covariances, holder by holder; groups of them against all of them."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from inference.likelihoods.holders.groups import (
    grouped,
    interpolation,
    noise_shape,
    one_by_one,
)
from inference.likelihoods.holders.law import HolderSums, second_moments

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
    counted = np.full(len(groups.at), variance) if variance else None

    def density(at):
        second = moments_at(at, case.constant, case.average)
        law = HolderSums(second, groups, counted, shape, constant=case.constant)
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
@pytest.mark.parametrize(("counts", "nodes"), [((10, 100_000), 40)])
def test_thousands_of_holders_reduce_to_few_sums(counts, nodes):
    case = some_case("isotropic", True, 5.0, holders=4000, counts=counts)
    whole, _ = fast_density(case, one_by_one)
    few, (groups, sums) = fast_density(case, grouped)
    assert groups <= nodes
    assert sums <= 11
    for at in AT:
        assert float(few(at)) == pytest.approx(float(whole(at)), rel=1e-8)
        np.testing.assert_allclose(jax.grad(few)(at), jax.grad(whole)(at), rtol=1e-7)


@pytest.mark.parametrize("counts", [(7, 7), (1, 1e6)])
def test_interpolated_functions_are_right_between_the_nodes(counts):
    records = np.exp(np.random.default_rng(1).uniform(*np.log(counts), 3000)).round()
    nodes, shares = interpolation(records)
    np.testing.assert_allclose(shares.sum(axis=0), 1, atol=1e-7)
    assert np.abs(shares).max() < 20
    for rate in np.logspace(-9, 3, 40):
        precision = 1 / (1 + rate * nodes)
        np.testing.assert_allclose(precision @ shares, 1 / (1 + rate * records), rtol=2e-7)
        np.testing.assert_allclose(np.log1p(rate * nodes) @ shares, np.log1p(rate * records), atol=1e-7)
