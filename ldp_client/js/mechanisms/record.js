/** What mechanisms for a record share: what a study says of it, and reading an answer into integers. */

import { fail } from "../errors.js";
import { signedUnits } from "../quantise.js";
import { bounds, check, decimal, hasOwn, identifier, isObject, listOf, oneOf, record as object } from "../shapes.js";

const NUMBER_FIELD = object({ id: identifier, bounds });
const YES_NO_FIELD = object({ id: identifier, ask: oneOf("yes_no") });
const SIGNS = new Map([["yes", 1], [true, 1], ["no", -1], [false, -1]]);
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
  if (!isObject(answer)) fail("answer", "must be {field: value, ...}", id);
  const fields = [...features, response];
  const names = fields.map((field) => `${id}.${field.id}`);
  fields.forEach((field, index) => hasOwn(answer, field.id) || fail("answer", "is missing", names[index]));
  if (Object.keys(answer).length > fields.length) fail("answer", "has an unknown field", id);
  const units = fields.map(({ id: name, bounds }, index) => {
    const most = index < features.length ? size : weight;
    if (bounds) return signedUnits(answer[name], bounds, most, names[index]);
    return most * (SIGNS.get(answer[name]) ?? fail("answer", "must be yes or no", names[index]));
  });
  return [units.slice(0, -1).map(BigInt), units.at(-1)];
}
