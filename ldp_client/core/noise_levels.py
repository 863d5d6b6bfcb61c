"""Convert a study's decimals to the integers that control the noise. Every rounding is towards privacy."""

from fractions import Fraction
from math import floor, isqrt

from ldp_client.core.integers import ceil_div, exp_bounds, log_upper, normal_cdf_bounds

# The Laplace scale and the Gaussian standard deviation are 2**NOISE_BITS grid units, in every study.
NOISE_BITS = 20
# Probabilities of choice mechanisms are integers over 2**CHOICE_BITS.
CHOICE_BITS = 32
WORK_BITS = 128
CDF_BITS = 256
# The sampled normal is truncated at 16 standard deviations: total variation below 2**-188 a coordinate.
TRUNCATION_BITS = 188
# More hash values would gain nothing: at such an epsilon almost no noise is left.
MOST_HASHES = 1 << 16
LARGEST_RADIUS = 64 << NOISE_BITS


def exp_epsilon_below(epsilon: Fraction) -> int:
    """Return the largest integer known not to exceed 2**WORK_BITS × e**epsilon."""
    return exp_bounds(floor(epsilon * (1 << WORK_BITS)), WORK_BITS)[0]


def log_ratio(numerator: int, denominator: int) -> Fraction:
    """Bound ln(numerator / denominator) from above, at most 2**-100 too large. The ratio is at least 1."""
    return Fraction(log_upper(numerator, denominator, 101), 1 << 101)


def laplace_levels(epsilon: Fraction) -> int:
    """Return N for a data grid 0..N and Laplace scale 2**NOISE_BITS: epsilon is then N / 2**NOISE_BITS."""
    return floor(epsilon * (1 << NOISE_BITS))


def unary_threshold(epsilon: Fraction) -> int:
    """Return T = ⌈2**b / (1 + e**ε)⌉: every bit but the true choice's is 1 with probability T / 2**b."""
    growth = exp_epsilon_below(epsilon)
    return ceil_div(1 << (CHOICE_BITS + WORK_BITS), (1 << WORK_BITS) + growth)


def truth_threshold(epsilon: Fraction, choices: int) -> int:
    """Return T = ⌊2**b e**ε / (e**ε + k − 1)⌋: the true choice of k is reported with probability T / 2**b."""
    return truth_threshold_of_weights(epsilon, 1, choices - 1)


def truth_threshold_of_weights(epsilon: Fraction, often: int, seldom: int) -> int:
    """Return ⌊2**b often·e**ε / (often·e**ε + seldom)⌋: `often` reports support the truth, `seldom` not."""
    growth = often * exp_epsilon_below(epsilon)
    return (growth << CHOICE_BITS) // (growth + (seldom << WORK_BITS))


def memoized_truth(epsilon: Fraction, first: int, choices: int) -> int:
    """Return T₂ so that k-ary randomized response with T₁ = first, then with T₂, gives at most epsilon.

    p − q of both stages together is the product of each stage's p − q, and must be at most
    (e**ε − 1) / (e**ε + k − 1).
    """
    growth, one, whole = exp_epsilon_below(epsilon), 1 << WORK_BITS, 1 << CHOICE_BITS
    others = choices - 1
    allowed = (growth - one) * whole * others
    of_first = (growth + others * one) * (first * choices - whole)
    return min(whole, whole * (of_first + others * allowed) // (choices * of_first))


def memoized_flip(epsilon: Fraction, first: int) -> int:
    """Return T₂ so that flipping a bit with probability first / 2**b, then T₂ / 2**b, gives at most epsilon.

    Both flips together must flip the bit with probability at least 1 / (1 + e**(ε/2)).
    """
    growth = exp_epsilon_below(epsilon / 2)
    both, whole = (1 << WORK_BITS) + growth, 1 << CHOICE_BITS
    missing = (1 << (WORK_BITS + CHOICE_BITS)) - first * both
    return max(0, ceil_div(missing * whole, both * (whole - 2 * first)))


def subset_size(epsilon: Fraction, choices: int) -> int:
    """Return the most accurate subset size, max(1, round(k / (1 + e**ε))). Any size is private."""
    whole = (1 << WORK_BITS) + exp_epsilon_below(epsilon)
    return max(1, ((choices << (WORK_BITS + 1)) + whole) // (2 * whole))


def hash_range(epsilon: Fraction) -> int:
    """Return the best number of hash values, round(e**ε) + 1, at least 2. Any number is private."""
    return min((exp_epsilon_below(epsilon) + (1 << (WORK_BITS - 1)) >> WORK_BITS) + 1, MOST_HASHES)


def hadamard_blocks(epsilon: Fraction, choices: int) -> int:
    """Return the largest power of two below min(e**ε, 2k), or 1. Any number of blocks is private."""
    growth = exp_epsilon_below(epsilon)
    blocks = 1
    while 2 * blocks << WORK_BITS < growth and blocks < choices:
        blocks *= 2
    return blocks


def gaussian_radius(epsilon: Fraction, delta: Fraction, dimension: int) -> int:
    """Return the largest integer R so that noise of sd 2**NOISE_BITS hides an L2 distance of R.

    Analytic Gaussian mechanism (Balle & Wang 2018, METHODS 1.5): δ(R) evaluated from above, plus
    the cost of truncating `dimension` coordinates. Returns 0 if not even R = 1 meets delta.
    """
    low, high = 0, LARGEST_RADIUS
    while low < high:
        middle = (low + high + 1) >> 1
        if _delta_above(middle, epsilon, dimension) <= delta * (1 << CDF_BITS):
            low = middle
        else:
            high = middle - 1
    return low


def _delta_above(radius: int, epsilon: Fraction, dimension: int) -> int:
    """Bound 2**CDF_BITS × δ from above: Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), μ = radius / 2**NOISE_BITS."""
    half_top = (radius << CDF_BITS) >> (NOISE_BITS + 1)
    ratio = floor(epsilon * (1 << (NOISE_BITS + CDF_BITS)) / radius)
    likely = normal_cdf_bounds(half_top - ratio + 1, CDF_BITS)[1]
    unlikely = normal_cdf_bounds(-half_top - ratio - 2, CDF_BITS)[0]
    growth_low, growth_high = exp_bounds(floor(epsilon * (1 << CDF_BITS)), CDF_BITS)
    truncation = ((growth_high + 1 + (1 << CDF_BITS)) * dimension >> TRUNCATION_BITS) + 1
    return likely - (unlikely * growth_low >> CDF_BITS) + truncation


def outer_product_sensitivity(square_norm: int) -> int:
    """Return an integer ≥ √2 × square_norm: it bounds ‖vvᵀ − wwᵀ‖ for integer ‖v‖², ‖w‖² ≤ square_norm.

    ‖vvᵀ − wwᵀ‖² = ‖v‖⁴ + ‖w‖⁴ − 2(v·w)². Two orthogonal vectors reach the bound.
    """
    return isqrt(2 * square_norm * square_norm) + 1
