/** Laplace noise on one bounded number: pure epsilon (Dwork et al. 2006). */

import { laplaceLevels } from "../noise_levels.js";
import { laplace } from "../strips.js";
import { noisyNumber, number } from "./number.js";

/** i in 0..levels, released as i + round(2**20 × Laplace(1)) in 4 bytes; true epsilon = levels / 2**20. */
export const mechanism = {
  kinds: [number],
  build: (question) => noisyNumber(question, laplaceLevels, laplace, "mechanism.epsilon"),
};
