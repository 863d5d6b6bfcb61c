/** Gaussian noise on one bounded number: (ε, δ), analytic calibration (Balle & Wang 2018). */

import { gaussianRadius } from "../calibration.js";
import { gridIndex } from "../quantise.js";
import { normal } from "../strips.js";
import { packSigned, tooSmall } from "./base.js";

/** i in 0..levels, released as i + round(2**20 × N(0, 1)) in 4 bytes. */
export function mechanism(question) {
  const levels = gaussianRadius(question.mechanism.epsilon, question.mechanism.delta, 1);
  if (levels < 1n) tooSmall(question, "mechanism");
  return {
    integers: { levels },
    payloadSize: 4,
    quantise: (answer) => gridIndex(answer, question.bounds, Number(levels), question.id),
    randomise: (quantised, random) => packSigned([quantised + normal(1, random)[0]]),
  };
}
