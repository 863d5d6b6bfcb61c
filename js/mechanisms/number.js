/** What mechanisms for one bounded number share. */

import { gridIndex, packSigned } from "../quantise.js";
import { bounds, check, fraction, record, text } from "../shapes.js";

export const number = {
  ask: "number",
  fields: { bounds },
  more: { refusal: record({ share: fraction }), unit: text(40) },
};

/** Load what a number needs that may be refused. */
export async function checkNumber(asked) {
  if (asked.refusal) asked.refuse = await import("../refusal.js");
}

/**
 * The mechanism that adds noise to the number's place on a grid 0..levels, as many as `levelsOf` ε hides; `stated`:
 * what decides that.
 */
export function noisyNumber(question, levelsOf, noise, stated) {
  const { refuse } = question;
  const levels = refuse?.levelsBeside(question, levelsOf) ?? levelsOf(question.mechanism.epsilon);
  check(levels, `${question.path}.${stated}`);
  const mechanism = {
    integers: { levels },
    payloadSize: 4,
    quantise: (answer) => gridIndex(answer, question.bounds, Number(levels), question.id),
    randomise: (quantised, random) => packSigned([quantised + noise(1, random)[0]]),
  };
  return refuse?.refusable(question, mechanism) ?? mechanism;
}
