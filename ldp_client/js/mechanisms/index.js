/** The mechanisms, each a file of its name that is loaded when a study names it. */

import { systemRandom } from "../randomness.js";

const LOADERS = {
  laplace: () => import("./laplace.js"),
  gaussian: () => import("./gaussian.js"),
  randomized_response: () => import("./randomized_response.js"),
  oue: () => import("./oue.js"),
  sue: () => import("./sue.js"),
  subset_selection: () => import("./subset_selection.js"),
  olh: () => import("./olh.js"),
  hadamard: () => import("./hadamard.js"),
  gaussian_statistics: () => import("./gaussian_statistics.js"),
  gaussian_record: () => import("./gaussian_record.js"),
};
const loaded = {};

/** Load what the questions need; `parseStudy` does it. */
export const loadMechanisms = (questions) =>
  Promise.all(
    questions.map(async ({ mechanism: { name } }) => (loaded[name] ??= (await LOADERS[name]()).mechanism)),
  );

/**
 * The mechanism that a parsed study's question names. Throws LdpkitError "study" where ε or δ is too
 * small for the question.
 */
export function mechanismFor(question) {
  const { name } = question.mechanism;
  const mechanism = loaded[name](question);
  const perturb = (answer, random = systemRandom) => mechanism.randomise(mechanism.quantise(answer), random);
  return { name, ...mechanism, perturb };
}
