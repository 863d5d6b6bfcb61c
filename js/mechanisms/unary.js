/** What mechanisms that send one bit for each choice share. */

import { CHOICE_BITS, unaryThreshold } from "../noise_levels.js";
import { take } from "../randomness.js";
import { check } from "../shapes.js";
import { checkOdds, choiceIndex } from "./choice.js";

/** The bytes of a bit for each choice: choice j is bit j % 8 (lowest first) of byte j // 8. */
export function unarySize({ choices, path }) {
  check(choices.length <= 65536, `${path}.mechanism.name`);
  return Math.ceil(choices.length / 8);
}

/** Return the mechanism whose bits `noisy` draws, other bits than the true one with T / 2**32. */
export function unary(question, epsilon, noisy) {
  const payloadSize = unarySize(question);
  const threshold = unaryThreshold(epsilon);
  checkOdds(question, (1n << CHOICE_BITS) - threshold, threshold);
  const randomise = (quantised, random) => {
    const bits = noisy(new Uint8Array(payloadSize), quantised, threshold, random);
    return trimmed(bits, question.choices.length);
  };
  return { integers: { threshold }, payloadSize, quantise: choiceIndex(question), randomise, says: "some" };
}

/** 8 × size bits, each 1 with probability threshold / 2**32. Bit-sliced: lowest digit first. */
export function biasedBits(threshold, size, random) {
  const buffer = take(random, size * Number(CHOICE_BITS));
  const bits = new Uint8Array(size);
  for (let digit = 0; digit < CHOICE_BITS; digit++) {
    const isOne = (threshold >> BigInt(digit)) & 1n;
    const fresh = buffer.subarray(digit * size);
    for (let index = 0; index < size; index++) {
      bits[index] = isOne ? bits[index] | fresh[index] : bits[index] & fresh[index];
    }
  }
  return bits;
}

/** The bits, each flipped with probability threshold / 2**32. */
export const flipped = (bits, threshold, random) =>
  biasedBits(threshold, bits.length, random).map((byte, index) => byte ^ bits[index]);

/** A bit for each choice, the given one's 1; touches every byte, whatever the answer. */
export const oneHot = (bits, index) => bits.map((_, byte) => Number(byte === index >> 3) << (index & 7));

/** The bits without those beyond the last choice. */
export function trimmed(bits, choices) {
  bits[bits.length - 1] &= 255 >> (8 * bits.length - choices);
  return bits;
}
