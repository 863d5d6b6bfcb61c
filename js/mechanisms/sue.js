/** Symmetric unary encoding (basic RAPPOR; Wang et al. 2017): one bit for each choice, each flipped alike. */

import { choice, flipped, oneHot, unary } from "./choice.js";

/** The true choice's bit is 1, the others' 0; each is flipped with probability T / 2**32. */
export const mechanism = { kinds: [choice], build };

function build(question) {
  const [numerator, denominator] = question.mechanism.epsilon;
  return unary(question, [numerator, 2n * denominator], (bits, quantised, threshold, random) =>
    flipped(oneHot(bits, quantised), threshold, random),
  );
}
