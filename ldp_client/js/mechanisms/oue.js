/** Optimized unary encoding (Wang et al. 2017): one noisy bit for each choice. */

import { CHOICE_BITS, unaryThreshold } from "../calibration.js";
import { checkOdds, choiceIndex } from "./choice.js";

/** Bit j % 8 (lowest first) of byte j // 8 is 1 with probability ½ for the true choice j, else T / 2**32. */
export function oue(question) {
  const choices = question.choices.length;
  const threshold = unaryThreshold(question.mechanism.epsilon);
  checkOdds(question, (1n << CHOICE_BITS) - threshold, threshold);
  const payloadSize = Math.ceil(choices / 8);

  /** Bit-sliced: compares all random fractions with the threshold at once, lowest digit first. */
  function randomise(quantised, random) {
    const buffer = random(payloadSize * (Number(CHOICE_BITS) + 1));
    const bits = new Uint8Array(payloadSize);
    for (let digit = 0; digit < CHOICE_BITS; digit++) {
      const isOne = (threshold >> BigInt(digit)) & 1n;
      const fresh = buffer.subarray(digit * payloadSize);
      for (let index = 0; index < payloadSize; index++) {
        bits[index] = isOne ? bits[index] | fresh[index] : bits[index] & fresh[index];
      }
    }
    return withTruth(bits, quantised, buffer.subarray(-payloadSize));
  }

  /** A fair coin in the true place, spare bits 0. Touches every byte, whatever the answer. */
  function withTruth(bits, quantised, coins) {
    const kept = bits.map((byte, index) => {
      const place = Number(index === quantised >> 3) << (quantised & 7);
      return (byte & ~place) | (coins[index] & place);
    });
    kept[payloadSize - 1] &= 255 >> (8 * payloadSize - choices);
    return kept;
  }

  return { integers: { threshold }, payloadSize, quantise: choiceIndex(question), randomise };
}
