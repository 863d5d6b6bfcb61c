/** Uniform integers from a source of random bytes: a function size → Uint8Array. */

import { fail } from "./errors.js";

const MOST_AT_ONCE = 65536;

/** The browser's cryptographic random bytes. */
export function systemRandom(size) {
  const bytes = new Uint8Array(size);
  for (let start = 0; start < size; start += MOST_AT_ONCE) {
    crypto.getRandomValues(bytes.subarray(start, start + MOST_AT_ONCE));
  }
  return bytes;
}

/** Of these bytes alone: they may be part of a larger buffer. */
export const viewOf = ({ buffer, byteOffset }) => new DataView(buffer, byteOffset);

/**
 * `size` bytes of a source: the only place that calls one. It is the browser's own, as no other can be trusted that
 * far, or says of itself that it is `forTests` only. Throws LdpkitError "input".
 */
export function take(random, size) {
  const bytes = (random === systemRandom || random.forTests) && random(size);
  return bytes?.length === size ? bytes : fail("input", "random: not secret");
}

export const randomUint32 = (random) => viewOf(take(random, 4)).getUint32(0);

export const randomUint64 = (random) => viewOf(take(random, 8)).getBigUint64(0);

/** `truth` with probability threshold / 2**32, else another of 0..count−1. Draws both whether needed or not. */
export function truthOrOther(truth, count, threshold, random) {
  const truthful = randomUint32(random) < threshold;
  const draw = uniformBelow(count - 1, random);
  const other = draw + Number(draw >= truth);
  return truthful ? truth : other;
}

/** A uniform integer in 0..limit−1, limit ≤ 2**32, by rejection; from a word that was drawn, if it is given. */
export function uniformBelow(limit, random, word = randomUint32(random)) {
  const ceiling = 2 ** 32 - (2 ** 32 % limit);
  while (word >= ceiling) word = randomUint32(random);
  return word % limit;
}
