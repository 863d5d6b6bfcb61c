/** What mechanisms for a record share: what the study says of it, and reading an answer into integers. */

import { fail } from "../errors.js";
import { signedUnits } from "../quantise.js";
import { bounds, check, decimal, hasOwn, identifier, isObject, listOf, oneOf, record as object } from "../shapes.js";

const NUMBER_FIELD = object({ id: identifier, bounds });
const YES_NO_FIELD = object({ id: identifier, ask: oneOf("yes_no") });
const [LINEAR, LOGISTIC] = ["linear_regression", "logistic_regression"];

function response(value, path) {
  return (isObject(value) && hasOwn(value, "ask") ? YES_NO_FIELD : NUMBER_FIELD)(value, path);
}

export const record = {
  ask: "record",
  fields: {
    features: listOf(NUMBER_FIELD, 1, 128, "id"),
    norm: decimal(([n, d]) => 1000n * n > d && n <= 1000n * d),
    response,
  },
  models: [LINEAR, LOGISTIC],
};

export function checkRecord({ features, response: { id, bounds: isNumber }, model, path }) {
  check(!features.some((feature) => feature.id === id), `${path}.response.id`, "is also a feature");
  oneOf(isNumber ? LINEAR : LOGISTIC)(model.name, `${path}.model.name`);
}

export function checkNames({ id, features, response }, answer) {
  if (!isObject(answer)) fail("answer", "must be a record: {feature: value, …, response: value}", id);
  const fields = [...features, response];
  for (const field of fields) {
    if (!hasOwn(answer, field.id)) fail("answer", "is missing", `${id}.${field.id}`);
  }
  if (Object.keys(answer).length > fields.length) {
    fail("answer", "has a field that the study does not ask for", id);
  }
}

/** One field of a record, its bounds (or no and yes) at ∓size. */
export function units(question, { id, bounds }, answer, size) {
  const value = answer[id];
  const name = `${question.id}.${id}`;
  if (bounds) return BigInt(signedUnits(value, bounds, size, name));
  if (value === "yes" || value === true) return BigInt(size);
  if (value === "no" || value === false) return BigInt(-size);
  return fail("answer", "must be yes or no", name);
}
