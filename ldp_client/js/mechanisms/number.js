/** What mechanisms for one bounded number share. */

import { gridIndex } from "../quantise.js";
import { bounds } from "../shapes.js";
import { packSigned, tooSmall } from "./base.js";

export const number = {
  ask: "number",
  fields: { bounds },
  models: ["normal", "exponential", "lognormal", "gamma", "weibull", "beta", "poisson", "geometric"],
};

/** The mechanism that adds noise to the number's place on a grid 0..levels; `stated`: what decides that. */
export function noisyNumber(question, levels, noise, stated) {
  if (levels < 1n) tooSmall(question, stated);
  return {
    integers: { levels },
    payloadSize: 4,
    quantise: (answer) => gridIndex(answer, question.bounds, Number(levels), question.id),
    randomise: (quantised, random) => packSigned([quantised + noise(1, random)[0]]),
  };
}
