/** Randomized response: the true choice, or any other (Warner 1965; k-ary: Kairouz et al. 2014). */

import { truthOrOther } from "../randomness.js";
import { bytesBelow, choice, choiceIndex, packBelow, thresholdFor, yesNo } from "./choice.js";

/** The true one of k choices with probability T / 2**32, else one of the others; its index, big-endian. */
export const mechanism = { kinds: [choice, yesNo], build };

function build(question) {
  const choices = question.choices.length;
  const threshold = thresholdFor(question, 1, choices - 1);
  const payloadSize = bytesBelow(choices);
  const randomise = (quantised, random) =>
    packBelow(truthOrOther(quantised, choices, threshold, random), payloadSize);
  return { integers: { threshold }, payloadSize, quantise: choiceIndex(question), randomise, says: "one" };
}
