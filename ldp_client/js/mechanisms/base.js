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
