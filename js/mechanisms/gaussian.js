/** Gaussian noise on one bounded number: (ε, δ), analytic calibration (Balle & Wang 2018). */

import { gaussianRadius } from "../noise_levels.js";
import { fraction } from "../shapes.js";
import { normal } from "../strips.js";
import { noisyNumber, number } from "./number.js";

/** i in 0..levels, released as i + round(2**20 × N(0, 1)) in 4 bytes. */
export const mechanism = {
  kinds: [number],
  parameters: { delta: fraction },
  build(question) {
    const levelsOf = (epsilon) => gaussianRadius(epsilon, question.mechanism.delta, 1);
    return noisyNumber(question, levelsOf, normal, "mechanism");
  },
};
