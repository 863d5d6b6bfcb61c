/** Integer arithmetic with proven bounds, on BigInts: the twin of ldp_client/core/integers.py. */

const GUARD_BITS = 40n;
// floor(2**256 / sqrt(2 pi))
const INVERSE_SQRT_TAU = 0x662114cf50d942343f2cf1402eae38bfd3829f30512706d8c0471b4802639d2en;
const INVERSE_SQRT_TAU_BITS = 256n;

const abs = (value) => (value < 0n ? -value : value);

/** The number of bits of a positive integer. */
const bitLength = (value) => BigInt(value.toString(2).length);

/** The integer square root, rounded down. */
export function isqrt(value) {
  if (value < 2n) return value;
  let root = 1n << ((bitLength(value) + 1n) / 2n);
  for (;;) {
    const better = (root + value / root) >> 1n;
    if (better >= root) return root;
    root = better;
  }
}

/** Enclose 2**bits × exp(exponent / 2**bits) in [low, high]; exponents between −400 and 400. */
export function expBounds(exponent, bits) {
  const work = bits + GUARD_BITS;
  const excess = bitLength(abs(exponent)) - bits + 8n;
  const halvings = excess > 0n ? excess : 0n;
  let low = smallExp(abs(exponent) << GUARD_BITS, work, halvings);
  let high = low + work; // one unit for each truncated term, and for the remainder
  for (let step = 0n; step < halvings; step++) {
    low = (low * low) >> work;
    high = ((high * high) >> work) + 1n;
  }
  if (exponent < 0n) [low, high] = [(1n << (2n * work)) / high, (1n << (2n * work)) / low + 1n];
  return [low >> GUARD_BITS, (high >> GUARD_BITS) + 1n];
}

/** 2**work × exp(argument / 2**(work + halvings)) from below, for an exponent under 2**-7. */
function smallExp(argument, work, halvings) {
  let term = 1n << work;
  let total = term;
  for (let step = 1n; term; step++) {
    term = ((term * argument) >> (work + halvings)) / step;
    total += term;
  }
  return total;
}

/** Enclose 2**bits × Φ(x / 2**bits), for bits ≤ 256: Φ(x) = ½ + φ(x) Σ x^(2n+1)/(2n+1)!!. */
export function normalCdfBounds(x, bits) {
  const one = 1n << bits;
  if (abs(x) > 24n << bits) return x > 0n ? [one - 1n, one] : [0n, 1n]; // Φ(−24) < 2**−419
  let [low, high] = centralMass(abs(x), bits);
  if (x < 0n) [low, high] = [-high, -low];
  return [(one >> 1n) + low, (one >> 1n) + high];
}

/** Enclose 2**bits × (Φ(x) − ½) for x ≥ 0. */
function centralMass(x, bits) {
  const square = (x * x) >> bits;
  const low = oddSeries(x, square, bits, 0n);
  const high = oddSeries(x, square + 1n, bits, 1n);
  // The density is as small as the series is large, so it needs more digits: about 0.72 x² bits.
  const extra = square >> bits;
  const exponent = ((x * x) << extra) >> (bits + 1n);
  const densityLow = expBounds(-exponent - 1n, bits + extra)[0] * INVERSE_SQRT_TAU;
  const densityHigh = expBounds(-exponent, bits + extra)[1] * (INVERSE_SQRT_TAU + 1n);
  const shift = bits + extra + INVERSE_SQRT_TAU_BITS;
  return [(low * densityLow) >> shift, ((high * densityHigh) >> shift) + 1n];
}

/** 2**bits × Σ x^(2n+1)/(2n+1)!!, every step rounded down, or up with its remainder. */
function oddSeries(x, square, bits, roundUp) {
  let term = x;
  let total = x;
  for (let odd = 1n; term > roundUp || odd << bits < 2n * square; ) {
    odd += 2n;
    const divisor = odd << bits;
    term = (term * square + roundUp * (divisor - 1n)) / divisor;
    total += term;
  }
  return total + 2n * roundUp;
}
