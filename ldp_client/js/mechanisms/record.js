/** What mechanisms for a record share: reading an answer into integers. */

import { fail } from "../errors.js";
import { signedUnits } from "../quantise.js";
import { hasOwn, isObject } from "../shapes.js";

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
