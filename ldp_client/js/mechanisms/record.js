/** What mechanisms for a record share: what a study says of it, and reading an answer into integers. */

import { fail } from "../errors.js";
import { signedUnits } from "../quantise.js";
import {
  bounds, check, checkNames, decimal, identifier, listOf, oneOf, record as object,
} from "../shapes.js";

const NUMBER_FIELD = object({ id: identifier, bounds });
const YES_NO_FIELD = object({ id: identifier, ask: oneOf("yes_no") });
const LINEAR = "linear_regression";
const LOGISTIC = "logistic_regression";

export const record = {
  ask: "record",
  fields: {
    features: listOf(NUMBER_FIELD, 1, 128, "id"),
    norm: decimal(([n, d]) => 1000n * n > d && n <= 1000n * d),
    response: (value, path) => (value?.ask === undefined ? NUMBER_FIELD : YES_NO_FIELD)(value, path),
  },
  models: [LINEAR, LOGISTIC],
};

export function checkRecord({ features, response: { id, bounds }, model, path }) {
  check(!features.some((feature) => feature.id === id), `${path}.response.id`);
  oneOf(bounds ? LINEAR : LOGISTIC)(model.name, `${path}.model.name`);
}

/**
 * The features of an answer in −size..size, their bounds at the ends, and its response likewise in
 * −weight..weight (a yes/no at the ends). Throws LdpkitError "answer".
 */
export function fieldsOf({ id, features, response }, answer, size, weight) {
  const fields = [...features, response];
  checkNames(answer, fields.map((field) => field.id), id);
  const units = fields.map(({ id: name, bounds }, index) => {
    const path = `${id}.${name}`;
    const most = index < features.length ? size : weight;
    if (bounds) return signedUnits(answer[name], bounds, most, path);
    const place = ["no", false, "yes", true].indexOf(answer[name]);
    if (place < 0) fail("answer", "must be yes or no", path);
    return place < 2 ? -most : most;
  });
  return [units.slice(0, -1).map(BigInt), units.at(-1)];
}
