/** Uniform integers from a source of random bytes: a function size → Uint8Array. */

const MOST_AT_ONCE = 65536;

/** The browser's cryptographic random bytes. */
export function systemRandom(size) {
  const bytes = new Uint8Array(size);
  for (let start = 0; start < size; start += MOST_AT_ONCE) {
    crypto.getRandomValues(bytes.subarray(start, start + MOST_AT_ONCE));
  }
  return bytes;
}

export const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

export const randomUint32 = (random) => viewOf(random(4)).getUint32(0);

export const randomUint64 = (random) => viewOf(random(8)).getBigUint64(0);

/** `truth` with probability threshold / 2**32, else another of 0..count−1. Draws both whether needed or not. */
export function truthOrOther(truth, count, threshold, random) {
  const truthful = randomUint32(random) < threshold;
  const draw = uniformBelow(count - 1, random);
  const other = draw + Number(draw >= truth);
  return truthful ? truth : other;
}

/** A uniform integer in 0..limit−1, limit ≤ 2**32, by rejection. */
export function uniformBelow(limit, random) {
  const ceiling = 2 ** 32 - (2 ** 32 % limit);
  for (;;) {
    const draw = randomUint32(random);
    if (draw < ceiling) return draw % limit;
  }
}
