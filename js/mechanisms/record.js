/** What mechanisms for a record share: what a study says of it, and reading an answer into integers. */

import { fail } from "../errors.js";
import { gridIndex } from "../quantise.js";
import { bounds, check, checkNames, decimal, identifier, isObject, listOf, oneOf, text } from "../shapes.js";
import { record as object } from "../shapes.js";

const label = { text: text(200) };
const NUMBER_FIELD = object({ id: identifier, bounds }, { ...label, unit: text(40) });
const YES_NO_FIELD = object({ id: identifier, ask: oneOf("yes_no") }, label);

/** Whether a field says what it asks, and is no number, which has bounds. */
const asks = (value) => isObject(value) && "ask" in value;

function feature(value, path) {
  check(!asks(value) || !("bounds" in value), `${path}.bounds`);
  return NUMBER_FIELD(value, path);
}

export const record = {
  ask: "record",
  fields: {
    features: listOf(feature, 1, 128, "id"),
    norm: decimal(([n, d]) => 1000n * n > d && n <= 1000n * d),
    response: (value, path) => (asks(value) ? YES_NO_FIELD : NUMBER_FIELD)(value, path),
  },
  complete(asked, path) {
    check(asked.features.every(({ id }) => id !== asked.response.id), `${path}.response.id`);
    return asked;
  },
};

/** Return the features of an answer in −size..size and its response in −weight..weight. */
export function fieldsOf({ id, features, response }, answer, size, weight) {
  checkNames(answer, [...features, response].map((field) => field.id), id);
  const unitsOf = (most) => ({ id: name, bounds, signs }) => {
    const path = `${id}.${name}`;
    if (signs) return signs(answer[name], path);
    if (bounds) return gridIndex(answer[name], bounds, 2 * most, path) - most;
    // A sign for each of the four spellings.
    return most * ([-1, -1, 1, 1][["no", false, "yes", true].indexOf(answer[name])] ?? fail("answer", "yes_no", path));
  };
  return [features.flatMap(unitsOf(size)).map(BigInt), unitsOf(weight)(response)];
}
