/** The mechanisms, by the names that studies use: question → {payloadSize, integers, quantise, randomise}. */

import { systemRandom } from "../randomness.js";
import { gaussianStatistics } from "./gaussian_statistics.js";
import { laplaceNumber } from "./laplace.js";
import { oue } from "./oue.js";
import { randomizedResponse } from "./randomized_response.js";

const MECHANISMS = {
  laplace: laplaceNumber,
  randomized_response: randomizedResponse,
  oue,
  gaussian_statistics: gaussianStatistics,
};

/**
 * The mechanism that a study's question names. Throws LdpkitError "study" where ε or δ is too small for
 * the question.
 */
export function mechanismFor(question) {
  const { name } = question.mechanism;
  const mechanism = MECHANISMS[name](question);
  const perturb = (answer, random = systemRandom) => mechanism.randomise(mechanism.quantise(answer), random);
  return { name, ...mechanism, perturb };
}
