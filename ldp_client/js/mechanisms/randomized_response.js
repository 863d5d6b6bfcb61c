/** Randomized response: the true choice, or any other (Warner 1965; k-ary: Kairouz et al. 2014). */

import { CHOICE_BITS, truthThreshold } from "../calibration.js";
import { truthOrOther } from "../randomness.js";
import { bytesBelow, checkOdds, choice, choiceIndex, packBelow, yesNo } from "./choice.js";

/** The true one of k choices with probability T / 2**32, else one of the others; its index, big-endian. */
export const mechanism = { kinds: [choice, yesNo], parameters: {}, build };

function build(question) {
  const choices = question.choices.length;
  const threshold = truthThreshold(question.mechanism.epsilon, choices);
  checkOdds(question, threshold * BigInt(choices - 1), (1n << CHOICE_BITS) - threshold);
  const payloadSize = bytesBelow(choices);
  const randomise = (quantised, random) =>
    packBelow(truthOrOther(quantised, choices, threshold, random), payloadSize);
  return { integers: { threshold }, payloadSize, quantise: choiceIndex(question), randomise };
}
