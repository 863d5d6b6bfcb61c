/** Symmetric unary encoding (basic RAPPOR; Wang et al. 2017): one bit for each choice, each flipped alike. */

import { choice, choiceIndex } from "./choice.js";
import { bitThreshold, flipped, oneHot, unarySize } from "./unary.js";

/** The true choice's bit is 1, the others' 0; each is flipped with probability T / 2**32. */
export const mechanism = { kinds: [choice], build };

function build(question) {
  const payloadSize = unarySize(question);
  const [numerator, denominator] = question.mechanism.epsilon;
  const threshold = bitThreshold(question, [numerator, 2n * denominator]);
  const randomise = (quantised, random) =>
    flipped(oneHot(new Uint8Array(payloadSize), quantised), threshold, question.choices.length, random);
  return { integers: { threshold }, payloadSize, quantise: choiceIndex(question), randomise, says: "some" };
}
