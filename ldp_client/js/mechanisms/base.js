/** What mechanisms share. */

import { fail } from "../errors.js";
import { viewOf } from "../randomness.js";

const LARGEST = 2 ** 31 - 1;

export function tooSmall({ path }, what) {
  fail("study", "is too small", `${path}.${what}`);
}

/** Signed 32-bit big-endian integers; beyond their range they saturate (post-processing). */
export function packSigned(values) {
  const view = viewOf(new Uint8Array(4 * values.length));
  values.forEach((value, index) => view.setInt32(4 * index, Math.min(Math.max(value, -LARGEST), LARGEST)));
  return new Uint8Array(view.buffer);
}

/** How many bytes hold every integer in 0..limit−1; 1 at least. */
export const bytesBelow = (limit) => (limit > 65536 ? (limit > 2 ** 24 ? 4 : 3) : limit > 256 ? 2 : 1);

/** The integer's lowest bytes, big-endian. */
export const packBelow = (value, size) =>
  Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value).slice(-size);

/** Two byte strings, one after the other. */
export const concat = (first, second) => Uint8Array.of(...first, ...second);
