"""Perturbed choices against enumeration of the private choice and of every report; packed rows of reports."""

from itertools import combinations, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from inference.likelihoods import PackedSupportSets
from inference.likelihoods.choices.counts import bit_sums, hadamard_cells, response_cells, subset_counts
from inference.likelihoods.choices.supports import pack_sets
from inference.likelihoods.common import CellCounts
from inference.models.totals import noisy_counts

PROBS = np.array([0.5, 0.25, 0.15, 0.08, 0.02])
K = len(PROBS)
log_prob = jax.jit(lambda law, value: law.log_prob(value))


def unary(p, q):
    """All patterns of independent bits, and the probability of each given each choice."""
    bits = np.array(list(product([0, 1], repeat=K)))
    ones = np.where(np.eye(K, dtype=bool), p, q)
    return bits, np.where(bits[:, None] == 1, ones, 1 - ones).prod(axis=-1)


def subsets(size, p):
    """The same of all sets of `size` choices."""
    sets = np.array([[j in chosen for j in range(K)] for chosen in combinations(range(K), size)])
    inside, outside = sets.sum(0)[0], (~sets).sum(0)[0]
    return sets.astype(float), np.where(sets, p / inside, (1 - p) / outside)


def hashed(hashes, p):
    """The same of all pairs of a hash function and a value: every function is equally likely."""
    functions = np.array(list(product(range(hashes), repeat=K)))
    bits = functions[:, None, :] == np.arange(hashes)[:, None]
    given = np.where(bits, p, (1 - p) / (hashes - 1)) / len(functions)
    return bits.reshape(-1, K).astype(float), given.reshape(-1, K)


# The reports, the law of how many of 37 support each choice, and the variance of further noise.
COUNTED = {
    "unary": (unary(0.5, 0.2), bit_sums(PROBS, 0.5, 0.2, 37), 0),
    "nearly noiseless unary": (unary(0.5, 2e-9), bit_sums(PROBS, 0.5, 2e-9, 37), 0),
    "often true unary": (unary(0.99, 0.2), bit_sums(PROBS, 0.99, 0.2, 37), 0),
    "local hashing": (hashed(3, 0.5), bit_sums(PROBS, 0.5, 1 / 3, 37), 0),
    "subset": (subsets(2, 0.5), subset_counts(PROBS, 0.5, 2, 37), 0),
    "often true subset": (subsets(2, 0.99), subset_counts(PROBS, 0.99, 2, 37), 0),
    "secure sum": (subsets(1, 1.0), noisy_counts(PROBS, 37, 0.3), 0.09),
    "secure sum, much noise": (subsets(1, 1.0), noisy_counts(PROBS, 37, 5.0), 25),
}


@pytest.mark.parametrize("name", COUNTED)
def test_counts_of_supports_have_the_enumerated_moments(name):
    (bits, given), law, noise = COUNTED[name]
    chances = given @ PROBS
    mean = chances @ bits
    covariance = 37 * (bits - mean).T @ ((bits - mean) * chances[:, None]) + noise * np.eye(K)
    value = 37 * mean + np.array([2.0, -1.5, 0.5, 1.0, -2.0]) * np.sqrt(np.diag(covariance))
    # Sets of one size have a density on a plane, here from all counts but the last.
    left, shift = (slice(K - 1), np.log(K) / 2) if "subset" in name else (slice(K), 0.0)
    value[-1] -= (value - 37 * mean).sum() if "subset" in name else 0
    expected = stats.multivariate_normal.logpdf(value[left], 37 * mean[left], covariance[left, left])
    assert float(log_prob(law, value)) == pytest.approx(expected - shift, rel=1e-9)
    np.testing.assert_allclose(law.mean, 37 * mean, rtol=1e-12)


@pytest.mark.parametrize("p", [0.20001, 0.4])
def test_randomized_response_matches_enumeration(p):
    channel = np.where(np.eye(K, dtype=bool), p, (1 - p) / (K - 1))
    outcomes = np.array([c for c in product(range(5), repeat=K) if sum(c) == 4])
    found = np.asarray(log_prob(CellCounts(response_cells(jnp.asarray(PROBS), p), 4), outcomes))
    np.testing.assert_allclose(found, stats.multinomial.logpmf(outcomes, 4, PROBS @ channel), rtol=1e-10)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("p", "blocks", "width"), [(0.7, 1, 8), (0.5, 2, 4), (0.9, 5, 2)])
def test_hadamard_cells_match_enumeration(p, blocks, width):
    """From the rows of Sylvester's matrix, one column at a time."""
    expected = np.zeros(blocks * width)
    for choice, share in enumerate(PROBS):
        block, row = divmod(choice, width - 1)
        for cell in range(blocks * width):
            even = bin((row + 1) & (cell % width)).count("1") % 2 == 0
            supported = cell // width == block and even
            expected[cell] += share * (p if supported else (1 - p) / (2 * blocks - 1)) / (width / 2)
    law = CellCounts(hadamard_cells(jnp.asarray(PROBS), p, blocks, width), 50)
    assert expected.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(law.cell_probs, expected, rtol=1e-12)


CHOICES = 21
THETA = np.random.default_rng(0).dirichlet(np.full(CHOICES, 0.5))
BITS = (np.random.default_rng(1).random((300, CHOICES)) < 0.3).astype(np.uint8)
BITS = np.concatenate([BITS, BITS[:90]])


@pytest.mark.parametrize("block_bits", [None, 24 * 50, 24 * 389, 1])
def test_packed_rows_match_sum_over_reports(block_bits):
    total = np.log1p(np.expm1(1.3) * (BITS @ THETA)).sum()
    sets = pack_sets(np.packbits(BITS, axis=1, bitorder="little"), block_bits)
    law = PackedSupportSets(jnp.array(THETA), 1.3, sets.counts)
    assert float(law.log_prob(sets.rows)) == pytest.approx(total, rel=1e-12)


SETS = {
    "unary": (unary(0.5, 0.2), np.log(4)),
    "nearly noiseless unary": (unary(0.5, 2e-9), np.log((1 - 2e-9) / 2e-9)),
    "subset": (subsets(2, 0.6), np.log(0.6 * (K - 2) / (0.4 * 2))),
    "local hashing": (hashed(3, 0.5), np.log(2)),
}


@pytest.mark.parametrize("name", SETS)
def test_sets_have_the_enumerated_law_of_every_mechanism(name):
    """Up to a factor that depends on the set alone."""
    (bits, given), odds = SETS[name]
    even = np.full(K, 1 / K)
    rows = np.packbits(bits.astype(np.uint8), axis=1, bitorder="little")[None]
    counts = np.random.default_rng(3).multinomial(200, given @ PROBS)[None]
    law, other = (PackedSupportSets(probs, odds, counts) for probs in (PROBS, even))
    expected = np.log((given @ PROBS) / (given @ even))
    np.testing.assert_allclose(law.log_densities(rows)[0] - other.log_densities(rows)[0], expected, atol=1e-9)
    apart = float(log_prob(law, rows) - log_prob(other, rows))
    assert apart == pytest.approx(float(counts[0] @ expected), rel=1e-9)
