/** From finite numbers to integers on the study's grid, and from noisy integers to bytes. */

import { fail } from "./errors.js";
import { isqrt } from "./integers.js";
import { viewOf } from "./randomness.js";

// A scaled feature or response of 1 is 2**UNIT_BITS.
export const UNIT_BITS = 20;
const LARGEST = 2 ** 31 - 1;

/** The nearest of the grid points 0..levels, low and high at the ends. */
export function gridIndex(value, [[, , low], [, , high]], levels, field) {
  if (!Number.isFinite(value)) fail("answer", "number", field);
  return Math.floor(clamp((value - low) / (high - low), 0, 1) * levels + 0.5);
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** Signed 32-bit big-endian integers; beyond their range they saturate (post-processing). */
export function packSigned(values) {
  const bytes = new Uint8Array(4 * values.length);
  values.forEach((value, index) => viewOf(bytes).setInt32(4 * index, clamp(value, -LARGEST, LARGEST)));
  return bytes;
}

/** The vector of BigInts shrunk, if it is longer than radius, so that its L2 norm is at most radius. Exact. */
export function clipNorm(vector, radius) {
  const root = isqrt(vector.reduce((total, entry) => total + entry * entry, -1n)) + 1n;
  const length = root > radius ? root : radius;
  return vector.map((entry) => (entry * radius) / length);
}
