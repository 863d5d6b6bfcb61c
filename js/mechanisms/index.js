/** The mechanisms, each a file of its name that is loaded when a study names it. */

import { systemRandom } from "../randomness.js";
import { check, epsilon, hasOwn, identifier, isObject, record } from "../shapes.js";
import { LOADERS } from "./loaders.js";

const loaded = {};

/** Load the mechanisms that a document names; whether it may is found out later. */
export async function loadMechanisms(document) {
  for (const asked of [].concat(document?.questions)) {
    const name = asked?.mechanism?.name;
    // What every object inherits is nothing to load: `loaded` has it too.
    loaded[name] ??= (await LOADERS[name]?.())?.mechanism;
  }
}

/** The kind of question that one asks, and the shape of its mechanism. Throws LdpkitError "study". */
export function kindOf({ ask, mechanism }, path) {
  path += ".mechanism";
  check(isObject(mechanism), path);
  const { name } = mechanism;
  const where = `${path}.name`;
  check(hasOwn(LOADERS, name), where);
  const { kinds, parameters, optional } = loaded[name];
  const kind = kinds.find((one) => one.ask === ask);
  check(kind, where);
  return { mechanism: record({ name: identifier, epsilon, ...parameters }, optional), ...kind };
}

/** The rules that join several fields of a question. Throws LdpkitError "study". */
export const checkTogether = (question) => loaded[question.mechanism.name].check?.(question);

/** Return a question's mechanism. Throws LdpkitError "study" where ε or δ is too small for it. */
export function mechanismFor(question) {
  const mechanism = loaded[question.mechanism.name].build(question);
  const perturb = (answer, random = systemRandom) => mechanism.randomise(mechanism.quantise(answer), random);
  return { ...mechanism, perturb };
}
