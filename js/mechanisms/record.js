/** What mechanisms for a record share: what a study says of it, and reading an answer into integers. */

import { fail } from "../errors.js";
import { gridIndex } from "../quantise.js";
import { bounds, check, checkNames, decimal, identifier, listOf, oneOf, text } from "../shapes.js";
import { record as object } from "../shapes.js";

const label = { text: text(200) };
const NUMBER_FIELD = object({ id: identifier, bounds }, { ...label, unit: text(40) });
const YES_NO_FIELD = object({ id: identifier, ask: oneOf("yes_no") }, label);

export const record = {
  ask: "record",
  fields: {
    features: listOf(NUMBER_FIELD, 1, 128, "id"),
    norm: decimal(([n, d]) => 1000n * n > d && n <= 1000n * d),
    response: (value, path) => (value?.ask ? YES_NO_FIELD : NUMBER_FIELD)(value, path),
  },
};

export function checkRecord({ features, response: { id }, path }) {
  check(features.every((feature) => feature.id !== id), `${path}.response.id`);
}

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
