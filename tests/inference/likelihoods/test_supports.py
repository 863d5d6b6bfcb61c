"""Sets of supported choices: each mechanism's law by enumeration, packed rows, float32."""

from __future__ import annotations

from itertools import combinations, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from likelihood_references import FALSE_ALARM, gradient, same_moments_p_value
from scipy import stats

from inference.likelihoods import (
    HadamardCounts,
    PackedSupportSets,
    SubsetCounts,
    SupportPatterns,
    UnaryEncodingColumnSums,
    UnaryEncodingPatterns,
)
from inference.likelihoods.choices.supports import pack_sets

PROBS = np.array([0.5, 0.25, 0.15, 0.08, 0.02])
K = len(PROBS)
log_prob = jax.jit(lambda law, value: law.log_prob(value))


def subset_law(size: int, p: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All sets of `size` choices as bits, the law of a report, and its law given a choice outside the set."""
    sets = np.array([[j in chosen for j in range(K)] for chosen in combinations(range(K), size)])
    inside, outside = sets.sum(0)[0], (~sets).sum(0)[0]
    given = np.where(sets, p / inside, (1 - p) / outside)
    return sets.astype(float), given @ PROBS, np.full(len(sets), (1 - p) / outside)


def hashed_law(hashes: int, p: float) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of a hash function and a value, as bits, and their law: every function equally likely."""
    functions = np.array(list(product(range(hashes), repeat=K)))
    bits = functions[:, None, :] == np.arange(hashes)[:, None]
    given = np.where(bits, p, (1 - p) / (hashes - 1)) / len(functions)
    return bits.reshape(-1, K).astype(float), (given @ PROBS).ravel()


def moments(bits: np.ndarray, law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = law @ bits
    return mean, (bits - mean).T @ ((bits - mean) * law[:, None])


@pytest.mark.parametrize(("size", "p"), [(2, 0.5), (3, 0.7), (4, 0.9), (2, 0.99)])
def test_subset_counts_have_the_enumerated_moments(size: int, p: float) -> None:
    bits, chances, _ = subset_law(size, p)
    mean, covariance = moments(bits, chances)
    law = SubsetCounts(PROBS, p, size, 37)
    np.testing.assert_allclose(law.mean, 37 * mean, rtol=1e-12)
    np.testing.assert_allclose(law.variance, 37 * np.diag(covariance), rtol=1e-9)
    value = 37 * mean + np.array([2.0, -1.5, 0.5, 1.0, -2.0])
    # The density on the plane, from all counts but the last.
    expected = stats.multivariate_normal.logpdf(value[:-1], 37 * mean[:-1], 37 * covariance[:-1, :-1])
    assert float(log_prob(law, value)) == pytest.approx(expected - np.log(K) / 2, rel=1e-9)


def test_subset_comparison_notices_independent_positions() -> None:
    bits, chances, _ = subset_law(2, 0.5)
    mean, covariance = moments(bits, chances)
    independent = UnaryEncodingColumnSums(PROBS, 0.5, 1.5 / 4, 37)
    np.testing.assert_allclose(independent.mean, 37 * mean, rtol=1e-12)
    assert abs(covariance[3, 4]) > 5 * 0.125**2 * PROBS[3] * PROBS[4]


def test_subset_sampler_follows_the_law() -> None:
    bits, chances, _ = subset_law(3, 0.7)
    mean, covariance = moments(bits, chances)
    draws = np.asarray(SubsetCounts(PROBS, 0.7, 3, 37).sample(jax.random.key(1), (4000,)))[:, :-1]
    mean, covariance = 37 * mean[:-1], 37 * covariance[:-1, :-1]
    assert same_moments_p_value(draws, mean, covariance) > FALSE_ALARM
    assert same_moments_p_value(draws, mean, 1.2 * covariance) < FALSE_ALARM


@pytest.mark.parametrize("size", [1, K])
def test_a_subset_without_a_normal_law_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="size"):
        SubsetCounts(PROBS, 0.5, size, 10)


def test_subset_patterns_match_enumeration() -> None:
    bits, chances, base = subset_law(2, 0.6)
    odds = np.log(0.6 * (K - 2) / (0.4 * 2))
    law = SupportPatterns(PROBS, odds, bits, np.log(base), 20)
    np.testing.assert_allclose(np.exp(law.log_pattern_probs), chances, rtol=1e-12)
    counts = np.random.default_rng(3).multinomial(20, chances)
    expected = stats.multinomial.logpmf(counts, 20, chances)
    assert float(log_prob(law, counts)) == pytest.approx(expected, rel=1e-9)


def test_local_hashing_has_the_moments_and_patterns_of_unary_bits() -> None:
    bits, chances = hashed_law(3, 0.5)
    mean, covariance = moments(bits, chances)
    law = UnaryEncodingColumnSums(PROBS, 0.5, 1 / 3, 37)
    value = 37 * mean + 1.5
    expected = stats.multivariate_normal.logpdf(value, 37 * mean, 37 * covariance)
    assert float(log_prob(law, value)) == pytest.approx(expected, rel=1e-9)
    patterns, place = np.unique(bits, axis=0, return_inverse=True)
    found = np.exp(UnaryEncodingPatterns(PROBS, 0.5, 1 / 3, patterns, 1).log_pattern_probs)
    np.testing.assert_allclose(found, np.bincount(place.ravel(), chances), rtol=1e-10)


def hadamard_cells(p: float, blocks: int, width: int) -> np.ndarray:
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
    law, expected = HadamardCounts(PROBS, p, blocks, width, 50), hadamard_cells(p, blocks, width)
    assert expected.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(law.cell_probs, expected, rtol=1e-12)
    counts = np.random.default_rng(4).multinomial(50, expected)
    assert float(log_prob(law, counts)) == pytest.approx(
        stats.multinomial.logpmf(counts, 50, expected), rel=1e-9
    )


def test_hadamard_counts_reject_a_wrong_width() -> None:
    for blocks, width in [(1, 4), (1, 6)]:
        with pytest.raises(ValueError, match="rows"):
            HadamardCounts(PROBS, 0.7, blocks, width, 10)


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


def test_equal_rows_are_counted_once() -> None:
    sets = pack_sets(ROWS)
    assert sets.counts.sum() == 390
    assert np.count_nonzero(sets.counts) == len(np.unique(ROWS, axis=0)) < 0.9 * 390
    assert np.count_nonzero(pack_sets(ROWS[:300]).counts) == 300


@pytest.mark.slow
def test_packed_derivatives_match_sum_over_reports() -> None:
    def plain(theta):
        return per_report(theta, np.concatenate([BITS, BITS[:90]])).sum()

    at = jnp.array(THETA)
    several = jnp.stack([at, at[::-1]])
    np.testing.assert_allclose(jax.grad(packed)(at), jax.grad(plain)(at), rtol=1e-10)
    np.testing.assert_allclose(jax.hessian(packed)(at), jax.hessian(plain)(at), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(jax.vmap(packed)(several), jax.vmap(plain)(several), rtol=1e-12)


def test_log_likelihood_is_zero_without_rows() -> None:
    assert float(packed(jnp.array(THETA), rows=ROWS[:0])) == 0


def test_support_sets_cannot_be_sampled_without_mechanism() -> None:
    with pytest.raises(NotImplementedError, match="mechanism"):
        PackedSupportSets(THETA, 1.3, np.ones((1, 2), int)).sample(jax.random.key(0))


def programs():
    counts = np.random.default_rng(5).multinomial(40, np.full(8, 1 / 8))
    return {
        "hadamard": lambda t: HadamardCounts(t, 0.7, 1, 8, 40).log_prob(counts),
        "hadamard blocks": lambda t: HadamardCounts(t, 0.7, 2, 4, 40).log_prob(counts),
        "subset counts": lambda t: SubsetCounts(t, 0.6, 3, 40).log_prob(np.array([30.0, 26, 25, 20, 19])),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", programs())
def test_gradients_are_right_and_batches_agree(name: str) -> None:
    program = programs()[name]
    at = np.array([0.3, -0.5, 1.0, 0.1, 0.4])
    smooth = jax.jit(lambda x: program(jax.nn.softmax(x)))
    np.testing.assert_allclose(
        jax.grad(smooth)(jnp.array(at)), gradient(smooth, at, 2e-2), rtol=1e-8, atol=1e-9
    )
    thetas = jnp.array([PROBS, PROBS[::-1]])
    expected = [program(theta) for theta in thetas]
    np.testing.assert_allclose(program(thetas), expected, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.vmap(program))(thetas), expected, rtol=1e-12)


def corners(choices: int) -> np.ndarray:
    """A vertex, the middle and a point beside a vertex of the simplex."""
    vertex = np.eye(choices)[0]
    return np.array([vertex, np.full(choices, 1 / choices), 0.999999 * vertex + 1e-6 / choices], np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("choices", [4, 1000])
def test_float32_stays_finite_out_in_the_tails(choices: int) -> None:
    """Counts that fit no share at all, of few reports and of 10^9, under weak and strong noise."""
    width = 1 << choices.bit_length()
    far, columns = np.eye(choices)[-1], np.eye(width)[-1]
    others = (choices // 2 - 1) / choices
    sets = pack_sets(np.packbits(far > 0, bitorder="little")[None])
    laws = [
        lambda t, p, n: UnaryEncodingColumnSums(t, p, 0.49, n).log_prob(n * far),
        lambda t, p, n: UnaryEncodingColumnSums(t, p, 2e-9, n).log_prob(n * far),
        lambda t, p, n: SubsetCounts(t, p, choices // 2, n).log_prob(n * (far + others)),
        lambda t, p, n: HadamardCounts(t, p, 1, width, n).log_prob(n * columns),
        lambda t, p, _: PackedSupportSets(t, 20.0 * p, sets.counts).log_prob(sets.rows),
    ]
    grid = [jnp.array(a) for a in zip(*product([1.0, 1e9], np.float32([0.5, 0.55, 0.999])), strict=True)]
    with jax.enable_x64(False):
        for law in laws:
            both = jax.jit(jax.vmap(jax.value_and_grad(law), (None, 0, 0)))
            for theta in corners(choices):
                n, p = (jnp.asarray(x, jnp.float32) for x in grid)
                density, slopes = both(theta, p, n)
                assert density.dtype == jnp.float32
                assert np.isfinite(density).all()
                assert np.isfinite(slopes).all()
