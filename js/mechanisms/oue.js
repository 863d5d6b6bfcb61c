/** Optimized unary encoding (Wang et al. 2017): one noisy bit for each choice. */

import { take } from "../randomness.js";
import { biasedBits, choice, oneHot, unary } from "./choice.js";

/** A bit is 1 with probability ½ for the true choice, else T / 2**32. */
export const mechanism = {
  kinds: [choice],
  build: (question) => unary(question, question.mechanism.epsilon, noisyBits),
};

function noisyBits(empty, quantised, threshold, random) {
  const bits = biasedBits(threshold, empty.length, random);
  const coins = take(random, empty.length);
  const places = oneHot(empty, quantised);
  return bits.map((byte, index) => (byte & ~places[index]) | (coins[index] & places[index]));
}
