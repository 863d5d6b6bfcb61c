/** Optimized unary encoding (Wang et al. 2017): one noisy bit for each choice. */

import { take } from "../randomness.js";
import { choice, choiceIndex } from "./choice.js";
import { biasedBits, bitThreshold, oneHot, trimmed, unarySize } from "./unary.js";

/** A bit is 1 with probability ½ for the true choice, else T / 2**32. */
export const mechanism = { kinds: [choice], build };

function build(question) {
  const payloadSize = unarySize(question);
  const threshold = bitThreshold(question, question.mechanism.epsilon);

  function randomise(quantised, random) {
    const bits = biasedBits(threshold, payloadSize, random);
    const coins = take(random, payloadSize);
    const places = oneHot(bits, quantised);
    const kept = bits.map((byte, index) => (byte & ~places[index]) | (coins[index] & places[index]));
    return trimmed(kept, question.choices.length);
  }

  return { integers: { threshold }, payloadSize, quantise: choiceIndex(question), randomise, says: "some" };
}
