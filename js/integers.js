/** Exact arithmetic on BigInts: fractions [numerator, denominator], and integers with proven bounds as in Python. */

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i;
const MAX_LENGTH = 40;
const MAX_EXPONENT = 60;

/** [numerator, denominator, nearest float] of a decimal such as "-0.5" or "1e-6", or null for anything else. */
export function parseDecimal(text) {
  const [found, sign, whole, fraction = "", exponent = "0"] = DECIMAL.exec(text) ?? [];
  if (!found || text.length > MAX_LENGTH || Math.abs(exponent) > MAX_EXPONENT) return null;
  const power = exponent - fraction.length;
  const digits = BigInt(sign + "1") * BigInt(whole + fraction);
  const scale = 10n ** BigInt(Math.abs(power));
  return power < 0 ? [digits, scale, +text] : [digits * scale, 1n, +text];
}

export const ZERO = [0n, 1n];

export const isBelow = ([a, b], [c, d]) => a * d < c * b;

export const add = ([a, b], [c, d]) => [a * d + c * b, b * d];

export const subtract = ([a, b], [c, d]) => [a * d - c * b, b * d];

/** The nearest float. */
export const nearest = ([a, b]) => Number((a << 64n) / b) / 2 ** 64;

/** The largest integer not above 2**bits × a / b, for a ≥ 0. */
export const floorScaled = ([a, b], bits) => (a << BigInt(bits)) / b;

const GUARD_BITS = 40n;
// floor(2**256 / sqrt(2 pi))
const INVERSE_SQRT_TAU = 0x662114cf50d942343f2cf1402eae38bfd3829f30512706d8c0471b4802639d2en;
const INVERSE_SQRT_TAU_BITS = 256n;

export const abs = (value) => (value < 0n ? -value : value);

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

/** Enclose 2**bits × Φ(x / 2**bits), for bits ≤ 256. */
export function normalCdfBounds(x, bits) {
  const half = 1n << (bits - 1n);
  const size = abs(x);
  const mass = size > 24n << bits ? half : centralMass(size, bits); // Φ(−24) < 2**−419
  return x < 0n ? [half - mass - 3n, half - mass + 1n] : [half + mass - 1n, half + mass + 3n];
}

/**
 * 2**bits × (Φ(x) − ½) = 2**bits × φ(x) Σ x^(2n+1)/(2n+1)!! for x from 0 to 24, at most 1 above it or 3 below.
 *
 * All is rounded down to 2**-work. The terms' errors grow no more than the terms, whose sum is below
 * (1 + x)·e^(x²/2), and there are fewer than 2**12: times φ(x) that is below 2**(17 − work). The density's
 * error times the sum is below 2**(x² + 5 − work). The constant is less than 1 unit too small.
 */
function centralMass(x, bits) {
  const work = bits + ((x * x) >> (2n * bits)) + GUARD_BITS;
  const point = x << (work - bits);
  const square = (point * point) >> work;
  let term = point;
  let total = point;
  for (let odd = 3n; term; odd += 2n) {
    term = (term * square) / (odd << work);
    total += term;
  }
  const density = expBounds(-square / 2n, work)[0] * INVERSE_SQRT_TAU;
  return (total * density) >> (2n * work - bits + INVERSE_SQRT_TAU_BITS);
}

/** How many bytes hold every integer in 0..limit−1; 1 at least. */
export function bytesBelow(limit) {
  return limit > 65536 ? (limit > 2 ** 24 ? 4 : 3) : limit > 256 ? 2 : 1;
}

/** The integer's lowest bytes, big-endian. */
export function packBelow(value, size) {
  return Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value).slice(-size);
}
