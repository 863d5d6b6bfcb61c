"""Integer arithmetic with proven bounds: exponential, logarithm, normal distribution.

A real number t is held in fixed point as t × 2**bits. Functions named `*_bounds` return integers
(low, high) that enclose the true value, so that a caller can round towards privacy.
"""

GUARD_BITS = 40

# floor(2**256 / sqrt(2 pi))
INVERSE_SQRT_TAU = 0x662114CF50D942343F2CF1402EAE38BFD3829F30512706D8C0471B4802639D2E
INVERSE_SQRT_TAU_BITS = 256


def bytes_below(limit: int) -> int:
    """Return how many bytes hold every integer in 0..limit−1: at least 1."""
    return max(1, ((limit - 1).bit_length() + 7) // 8)


def ceil_div(numerator: int, denominator: int) -> int:
    """Return numerator / denominator, rounded up."""
    return -(-numerator // denominator)


def exp_bounds(exponent: int, bits: int) -> tuple[int, int]:
    """Enclose 2**bits × exp(exponent / 2**bits); exponents between −400 and 400."""
    work = bits + GUARD_BITS
    halvings = max(0, abs(exponent).bit_length() - bits + 8)
    low = high = _small_exp(abs(exponent) << GUARD_BITS, work, halvings)
    high += work  # one unit for each truncated term, and for the remainder
    for _ in range(halvings):
        low = (low * low) >> work
        high = ((high * high) >> work) + 1
    if exponent < 0:
        low, high = (1 << (2 * work)) // high, (1 << (2 * work)) // low + 1
    return low >> GUARD_BITS, (high >> GUARD_BITS) + 1


def _small_exp(argument: int, work: int, halvings: int) -> int:
    """Bound 2**work × exp(argument / 2**(work + halvings)) from below, for an exponent under 2**-7."""
    total = term = 1 << work
    step = 1
    while term:
        term = (term * argument) >> (work + halvings)
        term //= step
        total += term
        step += 1
    return total


def log_upper(numerator: int, denominator: int, bits: int) -> int:
    """Return an integer at most 1 above 2**bits × ln(numerator / denominator), never below. Ratio ≥ 1."""
    doublings = 0
    while numerator > 2 * denominator:
        denominator *= 2
        doublings += 1
    work = bits + GUARD_BITS
    total = _twice_atanh(numerator - denominator, numerator + denominator, work)
    total += doublings * _twice_atanh(1, 3, work)
    return (total >> GUARD_BITS) + 1


def _twice_atanh(numerator: int, denominator: int, work: int) -> int:
    """Bound 2**work × ln((1+t)/(1−t)) from above, for t = numerator / denominator in [0, 1/3]."""
    power = ceil_div(numerator << (work + 1), denominator)
    total = 0
    odd = 1
    while power > 1:
        total += ceil_div(power, odd)
        power = ceil_div(power * numerator * numerator, denominator * denominator)
        odd += 2
    return total + 2


def normal_cdf_bounds(x: int, bits: int) -> tuple[int, int]:
    """Enclose 2**bits × Φ(x / 2**bits), for bits ≤ 256.

    Φ(x) = ½ + φ(x) Σ x^(2n+1)/(2n+1)!!, a series of positive terms.
    """
    one = 1 << bits
    if abs(x) > 24 << bits:  # Φ(−24) < 2**−419
        return (one - 1, one) if x > 0 else (0, 1)
    low, high = _central_mass(abs(x), bits)
    if x < 0:
        low, high = -high, -low
    return (one >> 1) + low, (one >> 1) + high


def _central_mass(x: int, bits: int) -> tuple[int, int]:
    """Enclose 2**bits × (Φ(x) − ½) for x ≥ 0."""
    square = (x * x) >> bits
    low = _odd_series(x, square, bits, 0)
    high = _odd_series(x, square + 1, bits, 1)
    # The density is as small as the series is large, so it needs more digits: about 0.72 x² bits.
    extra = square >> bits
    exponent = ((x * x) << extra) >> (bits + 1)
    density_low = exp_bounds(-exponent - 1, bits + extra)[0] * INVERSE_SQRT_TAU
    density_high = exp_bounds(-exponent, bits + extra)[1] * (INVERSE_SQRT_TAU + 1)
    shift = bits + extra + INVERSE_SQRT_TAU_BITS
    return (low * density_low) >> shift, ((high * density_high) >> shift) + 1


def _odd_series(x: int, square: int, bits: int, round_up: int) -> int:
    """Bound 2**bits × Σ x^(2n+1)/(2n+1)!!: every step rounds down, or up with its remainder."""
    total = term = x
    odd = 1
    while term > round_up or odd << bits < 2 * square:
        odd += 2
        divisor = odd << bits
        term = (term * square + round_up * (divisor - 1)) // divisor
        total += term
    return total + 2 * round_up
