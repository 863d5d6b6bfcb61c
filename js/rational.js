/** Exact fractions [numerator, denominator] of BigInts, and the decimals that documents write. */

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

export const isBelow = ([a, b], [c, d]) => a * d < c * b;

export const add = ([a, b], [c, d]) => [a * d + c * b, b * d];

export const subtract = ([a, b], [c, d]) => [a * d - c * b, b * d];

/** The nearest float. */
export const nearest = ([a, b]) => Number((a << 64n) / b) / 2 ** 64;

/** The largest integer not above 2**bits × a / b, for a ≥ 0. */
export const floorScaled = ([a, b], bits) => (a << BigInt(bits)) / b;
