/**
 * From an answer to integers on the study's grid, clamped. Only after this does noise come in.
 * NaN, a missing value and infinity become fixed grid points, so nothing about them can be seen.
 */

import { fail } from "./errors.js";
import { isqrt } from "./integers.js";

// A scaled feature or response of 1 is 2**UNIT_BITS.
export const UNIT_BITS = 20;

/** Where a number lies between its bounds: 0 at low, 1 at high, clamped; the middle when missing. */
function position(value, [[, , low], [, , high]], field) {
  const number = value ?? NaN;
  if (typeof number !== "number") fail("answer", "must be a number", field);
  if (isNaN(number)) return 0.5;
  if (number <= low) return 0;
  if (number >= high) return 1;
  return Math.min(Math.max((number - low) / (high - low), 0), 1);
}

/** The nearest of the grid points 0..levels. */
export const gridIndex = (value, bounds, levels, field) =>
  Math.min(Math.floor(position(value, bounds, field) * levels + 0.5), levels);

/** The number scaled to [−1, 1] by its bounds, in units of 1/size: −size..size, 0 when missing. */
export const signedUnits = (value, bounds, size, field) =>
  Math.floor(position(value, bounds, field) * (2 * size) + 0.5) - size;

/** The vector of BigInts shrunk, if it is longer than radius, so that its L2 norm is at most radius. Exact. */
export function clipNorm(vector, radius) {
  const square = vector.reduce((total, entry) => total + entry * entry, 0n);
  if (square <= radius * radius) return vector;
  const length = isqrt(square - 1n) + 1n;
  return vector.map((entry) => (entry * radius) / length);
}
