/** The priors that a study may state; devices only check them (ldp_client/documents/priors.py says what the names mean). */

import { PRIORS } from "./prior_shapes.js";
import { check, record } from "./shapes.js";

/** A question's priors fit its model, and speak of its own features and choices. Throws LdpkitError "study". */
export function checkPriors({ features, choices, refusal, model, path }) {
  const where = `${path}.model.prior`;
  const stated = record({}, PRIORS[model.name])(model.prior, where);
  for (const [name, { features: ids = [], concentration }] of Object.entries(stated)) {
    check(name !== "refused" || refusal, `${where}.refused`);
    for (const id of ids) {
      check(features.some((feature) => feature.id === id), `${where}.${name}.${id}`);
    }
    const listed = Array.isArray(concentration?.[0]);
    check(!listed || concentration.length === choices.length - !!refusal, `${where}.${name}.concentration`);
  }
}
