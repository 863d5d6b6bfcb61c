/** What mechanisms for one bounded number share. */

import { number as models } from "../models.js";
import { gridIndex, packSigned } from "../quantise.js";
import { bounds, check } from "../shapes.js";

export const number = {
  ask: "number",
  fields: { bounds },
  models,
};

/** The mechanism that adds noise to the number's place on a grid 0..levels; `stated`: what decides that. */
export function noisyNumber(question, levels, noise, stated) {
  check(levels, `${question.path}.${stated}`);
  return {
    integers: { levels },
    payloadSize: 4,
    quantise: (answer) => gridIndex(answer, question.bounds, Number(levels), question.id),
    randomise: (quantised, random) => packSigned([quantised + noise(1, random)[0]]),
  };
}
