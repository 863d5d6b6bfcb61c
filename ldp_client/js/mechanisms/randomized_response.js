/** Randomized response: the true choice, or any other (Warner 1965; k-ary: Kairouz et al. 2014). */

import { CHOICE_BITS, truthThreshold } from "../calibration.js";
import { randomUint32, uniformBelow } from "../randomness.js";
import { checkOdds, choiceIndex } from "./choice.js";

/** The true one of k choices with probability T / 2**32, else one of the others; its index, big-endian. */
export function randomizedResponse(question) {
  const choices = question.choices.length;
  const threshold = truthThreshold(question.mechanism.epsilon, choices);
  checkOdds(question, threshold * BigInt(choices - 1), (1n << CHOICE_BITS) - threshold);
  const payloadSize = choices > 256 ? 2 : 1;

  /** Draws the coin and the other choice whether or not it needs them. */
  function randomise(quantised, random) {
    const truthful = randomUint32(random) < threshold;
    const draw = uniformBelow(choices - 1, random);
    const other = draw + Number(draw >= quantised);
    const reported = truthful ? quantised : other;
    return Uint8Array.of(reported >> 8, reported).slice(-payloadSize);
  }

  return { integers: { threshold }, payloadSize, quantise: choiceIndex(question), randomise };
}
