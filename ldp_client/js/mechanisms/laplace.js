/** Laplace noise on one bounded number: pure epsilon (Dwork et al. 2006). */

import { laplaceLevels } from "../calibration.js";
import { gridIndex } from "../quantise.js";
import { laplace } from "../strips.js";
import { packSigned, tooSmall } from "./base.js";

/** i in 0..levels, released as i + round(2**20 × Laplace(1)) in 4 bytes; true epsilon = levels / 2**20. */
export function mechanism(question) {
  const levels = laplaceLevels(question.mechanism.epsilon);
  if (levels < 1n) tooSmall(question, "mechanism.epsilon");
  return {
    integers: { levels },
    payloadSize: 4,
    quantise: (answer) => gridIndex(answer, question.bounds, Number(levels), question.id),
    randomise: (quantised, random) => packSigned([quantised + laplace(1, random)[0]]),
  };
}
