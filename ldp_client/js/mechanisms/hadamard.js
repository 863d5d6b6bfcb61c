/** Hadamard response (Acharya, Sun & Zhang 2019): one column of a Hadamard matrix, in a few bytes. */

import { CHOICE_BITS, WORK_BITS, expEpsilonBelow, truthThreshold } from "../calibration.js";
import { randomUint32, truthOrOther } from "../randomness.js";
import { bytesBelow, checkOdds, choice, choiceIndex, packBelow } from "./choice.js";

/** One of blocks × width columns, in a supporting one with probability T / 2**32. */
export const mechanism = { kinds: [choice], parameters: {}, build };

function build(question) {
  const { choices } = question;
  const { epsilon } = question.mechanism;
  const growth = expEpsilonBelow(epsilon);
  let blocks = 1;
  while (BigInt(2 * blocks) << WORK_BITS < growth && blocks < choices.length) blocks *= 2;
  let width = 2;
  while ((width - 1) * blocks < choices.length) width *= 2;
  const threshold = truthThreshold(epsilon, 2 * blocks);
  checkOdds(question, threshold * BigInt(2 * blocks - 1), (1n << CHOICE_BITS) - threshold);
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
