/** The mechanisms, each a file of its name that is loaded when a study names it. */

import { systemRandom } from "../randomness.js";
import { check, epsilon, oneOf, record } from "../shapes.js";

export const LOADERS = {
  laplace: () => import("./laplace.js"),
  gaussian: () => import("./gaussian.js"),
  randomized_response: () => import("./randomized_response.js"),
  oue: () => import("./oue.js"),
  sue: () => import("./sue.js"),
  subset_selection: () => import("./subset_selection.js"),
  olh: () => import("./olh.js"),
  hadamard: () => import("./hadamard.js"),
  memoized: () => import("./memoized.js"),
  gaussian_statistics: () => import("./gaussian_statistics.js"),
  gaussian_record: () => import("./gaussian_record.js"),
};
const loaded = {};

/** Load what a question names, and read its stated parameters. Throws LdpkitError "study". */
export async function readMechanism({ ask, mechanism: stated, path }) {
  const { name } = stated;
  const { asks, parameters, check: checkTogether } = (loaded[name] ??= (await LOADERS[name]()).mechanism);
  check(asks.includes(ask), `${path}.mechanism.name`, `does not fit a question that asks ${ask}`);
  const mechanism = record({ name: oneOf(name), epsilon, ...parameters })(stated, `${path}.mechanism`);
  checkTogether?.({ ask, mechanism, path });
  return mechanism;
}

/**
 * The mechanism that a parsed study's question names. Throws LdpkitError "study" where ε or δ is too
 * small for the question.
 */
export function mechanismFor(question) {
  const { name } = question.mechanism;
  const mechanism = loaded[name].build(question);
  const perturb = (answer, random = systemRandom) => mechanism.randomise(mechanism.quantise(answer), random);
  return { name, ...mechanism, perturb };
}
