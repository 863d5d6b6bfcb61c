/** Hadamard response (Acharya, Sun & Zhang 2019): one column of a Hadamard matrix, in a few bytes. */

import { WORK_BITS, expEpsilonBelow } from "../noise_levels.js";
import { randomUint32, truthOrOther } from "../randomness.js";
import { bytesBelow, choice, choiceIndex, packBelow, thresholdFor } from "./choice.js";

/** One of blocks × width columns, in a supporting one with probability T / 2**32. */
export const mechanism = { kinds: [choice], build };

function build(question) {
  const { choices, mechanism: stated } = question;
  const growth = expEpsilonBelow(stated.epsilon);
  let blocks = 1;
  while (BigInt(2 * blocks) << WORK_BITS < growth && blocks < choices.length) blocks *= 2;
  let width = 2;
  while ((width - 1) * blocks < choices.length) width *= 2;
  const threshold = thresholdFor(question, 1, 2 * blocks - 1);
  const payloadSize = bytesBelow(blocks * width);

  /** Draws a half of a block by randomized response, then a column of it, uniformly. */
  function randomise(quantised, random) {
    const block = Math.floor(quantised / (width - 1));
    const row = (quantised % (width - 1)) + 1;
    const half = truthOrOther(2 * block, 2 * blocks, threshold, random);
    const column = randomUint32(random) & (width - 1);
    // Flipping one of the row's bits maps the one half of the columns onto the other.
    const moved = column ^ ((row & -row) * (parity(column & row) ^ (half & 1)));
    return packBelow((half >> 1) * width + moved, payloadSize);
  }

  const integers = { threshold, blocks: BigInt(blocks), width: BigInt(width) };
  return { integers, payloadSize, quantise: choiceIndex(question), randomise };
}

function parity(word) {
  for (const shift of [16, 8, 4, 2, 1]) word ^= word >> shift;
  return word & 1;
}
