"""Sets of supported choices: each mechanism's law by enumeration, packed rows, float32."""

from __future__ import annotations

from functools import partial
from itertools import combinations, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from inference.likelihoods import PackedSupportSets
from inference.likelihoods.choices.multinomial import hadamard_cells
from inference.likelihoods.choices.support_counts import bit_sums, subset_counts
from inference.likelihoods.choices.supports import pack_sets
from inference.likelihoods.common import CellCounts

PROBS = np.array([0.5, 0.25, 0.15, 0.08, 0.02])
K = len(PROBS)
log_prob = jax.jit(lambda law, value: law.log_prob(value))


def subset_law(size: int, p: float, probs: np.ndarray = PROBS) -> tuple[np.ndarray, np.ndarray]:
    """All sets of `size` choices as bits, and the law of a report."""
    sets = np.array([[j in chosen for j in range(K)] for chosen in combinations(range(K), size)])
    inside, outside = sets.sum(0)[0], (~sets).sum(0)[0]
    given = np.where(sets, p / inside, (1 - p) / outside)
    return sets.astype(float), given @ probs


def hashed_law(hashes: int, p: float, probs: np.ndarray = PROBS) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of a hash function and a value, as bits, and their law: every function equally likely."""
    functions = np.array(list(product(range(hashes), repeat=K)))
    bits = functions[:, None, :] == np.arange(hashes)[:, None]
    given = np.where(bits, p, (1 - p) / (hashes - 1)) / len(functions)
    return bits.reshape(-1, K).astype(float), (given @ probs).ravel()


def moments(bits: np.ndarray, law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = law @ bits
    return mean, (bits - mean).T @ ((bits - mean) * law[:, None])


@pytest.mark.parametrize(("size", "p"), [(2, 0.5), (2, 0.99)])
def test_subset_counts_have_the_enumerated_moments(size: int, p: float) -> None:
    bits, chances = subset_law(size, p)
    mean, covariance = moments(bits, chances)
    law = subset_counts(PROBS, p, size, 37)
    np.testing.assert_allclose(law.mean, 37 * mean, rtol=1e-12)
    np.testing.assert_allclose(law.variance, 37 * np.diag(covariance), rtol=1e-9)
    value = 37 * mean + np.array([2.0, -1.5, 0.5, 1.0, -2.0])
    # The density on the plane, from all counts but the last.
    expected = stats.multivariate_normal.logpdf(value[:-1], 37 * mean[:-1], 37 * covariance[:-1, :-1])
    assert float(log_prob(law, value)) == pytest.approx(expected - np.log(K) / 2, rel=1e-9)


def test_local_hashing_has_the_moments_of_unary_bits() -> None:
    bits, chances = hashed_law(3, 0.5)
    mean, covariance = moments(bits, chances)
    law = bit_sums(PROBS, 0.5, 1 / 3, 37)
    value = 37 * mean + 1.5
    expected = stats.multivariate_normal.logpdf(value, 37 * mean, 37 * covariance)
    assert float(log_prob(law, value)) == pytest.approx(expected, rel=1e-9)


def enumerated_hadamard(p: float, blocks: int, width: int) -> np.ndarray:
    """Cell probabilities from the rows of Sylvester's matrix, one column at a time."""
    cells = np.zeros(blocks * width)
    for choice, share in enumerate(PROBS):
        block, row = divmod(choice, width - 1)
        for cell in range(blocks * width):
            even = bin((row + 1) & (cell % width)).count("1") % 2 == 0
            supported = cell // width == block and even
            cells[cell] += share * (p if supported else (1 - p) / (2 * blocks - 1)) / (width / 2)
    return cells


@pytest.mark.parametrize(("p", "blocks", "width"), [(0.7, 1, 8), (0.5, 2, 4), (0.9, 5, 2)])
def test_hadamard_cells_match_enumeration(p: float, blocks: int, width: int) -> None:
    expected = enumerated_hadamard(p, blocks, width)
    law = CellCounts(hadamard_cells(jnp.asarray(PROBS), p, blocks, width), 50)
    assert expected.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(law.cell_probs, expected, rtol=1e-12)
    counts = np.random.default_rng(4).multinomial(50, expected)
    assert float(log_prob(law, counts)) == pytest.approx(
        stats.multinomial.logpmf(counts, 50, expected), rel=1e-9
    )


CHOICES = 21
THETA = np.random.default_rng(0).dirichlet(np.full(CHOICES, 0.5))
BITS = (np.random.default_rng(1).random((300, CHOICES)) < 0.3).astype(np.uint8)
ROWS = np.packbits(np.concatenate([BITS, BITS[:90]]), axis=1, bitorder="little")


def per_report(theta, bits):
    """Log densities of reports (…, k), one by one."""
    return jnp.log1p(jnp.expm1(1.3) * (bits * theta).sum(-1))


def packed(theta, block_bits=None, rows=ROWS):
    sets = pack_sets(rows, block_bits)
    return PackedSupportSets(theta, 1.3, sets.counts).log_prob(sets.rows)


@pytest.mark.parametrize("block_bits", [None, 24 * 50, 24 * 389, 1])
def test_packed_rows_match_sum_over_reports(block_bits: int | None) -> None:
    total = float(per_report(THETA, np.concatenate([BITS, BITS[:90]])).sum())
    assert float(packed(jnp.array(THETA), block_bits)) == pytest.approx(total, rel=1e-12)


def unary_law(p: float, q: float, probs: np.ndarray = PROBS) -> tuple[np.ndarray, np.ndarray]:
    """All patterns of independent bits, and the law of a report."""
    bits = np.array(list(product([0, 1], repeat=K)))
    ones = np.where(np.eye(K, dtype=bool), p, q)
    return bits, np.where(bits[:, None] == 1, ones, 1 - ones).prod(axis=-1) @ probs


LAWS = {
    "unary": (partial(unary_law, 0.5, 0.2), np.log(4)),
    "nearly noiseless unary": (partial(unary_law, 0.5, 2e-9), np.log((1 - 2e-9) / 2e-9)),
    "subset": (partial(subset_law, 2, 0.6), np.log(0.6 * (K - 2) / (0.4 * 2))),
    "local hashing": (partial(hashed_law, 3, 0.5), np.log(2)),
}


@pytest.mark.parametrize("name", LAWS)
def test_sets_have_the_enumerated_law_of_every_mechanism(name: str) -> None:
    """Up to a factor that depends on the set alone."""
    law_of, odds = LAWS[name]
    even = np.full(K, 1 / K)
    (bits, chances), (_, others) = law_of(PROBS), law_of(even)
    rows = np.packbits(bits.astype(np.uint8), axis=1, bitorder="little")[None]
    counts = np.random.default_rng(3).multinomial(200, chances)[None]
    law, other = (PackedSupportSets(probs, odds, counts) for probs in (PROBS, even))
    expected = np.log(chances / others)
    np.testing.assert_allclose(law.log_densities(rows)[0] - other.log_densities(rows)[0], expected, atol=1e-9)
    apart = float(log_prob(law, rows) - log_prob(other, rows))
    assert apart == pytest.approx(float(counts[0] @ expected), rel=1e-9)
