/** Features of sampled products that have levels: a number cut into bins, or one of a few choices. */

import { fail } from "./errors.js";
import { choiceIndex } from "./mechanisms/choice.js";
import { UNIT_BITS } from "./quantise.js";
import { bounds, check, decimal, identifier, listOf, oneOf, record, text } from "./shapes.js";

const UNIT = 2 ** UNIT_BITS;
// Of products of fields that have several entries each has its part of so much, nearly.
const PARTS = 2520;
const label = { text: text(200) };
const CUT = record(
  { id: identifier, bounds, cuts: listOf(decimal(Boolean), 1, 15) },
  { ...label, unit: text(40) },
);
const CHOICE = record({ id: identifier, ask: oneOf("choice"), choices: listOf(text(200), 2, 16) }, label);

/** Read features with levels. The question gets all `entries`, and `share`: how often two make a product. */
export function read(question) {
  const { id, features, response, path } = question;
  const fields = features.map((feature, index) => leveled(feature, `${path}.features[${index}]`, id));
  check(fields.reduce((cells, { size }) => cells * (1 + size), 1) <= 2 ** 16, `${path}.features`);
  const entries = fields.flatMap((field) => Array.from({ length: field.size }, () => ({ ...field, of: field })));
  question.features = fields;
  question.entries = [{}, ...entries, response];
  const parts = fields.some(({ size }) => size > 1) ? PARTS : 1;
  question.share = (one, other) => {
    const known = one.of ? one.of === other.of : one === other && !one.bounds;
    return known ? 0 : Math.floor(parts / ((one.size ?? 1) * (other.size ?? 1)));
  };
}

/** A feature with `signs`, from an answer to its entries, of which there are `size`. */
function leveled(feature, path, question) {
  if (feature.ask === "choice") return chosen(CHOICE(feature, path), question);
  // A yes/no, which has been read: what has cuts is a number, or nothing.
  if (feature.ask && !feature.cuts) return { ...feature, size: 1 };
  const field = CUT(feature, path);
  const ends = [field.bounds[0], ...field.cuts, field.bounds[1]].map(([, , nearest]) => nearest);
  check(ends.every((end, index) => !index || ends[index - 1] < end), `${path}.cuts`);
  // The answer itself is compared: a grid would move cuts that are finer than it.
  const signs = (answer, name) => {
    if (!Number.isFinite(answer)) fail("answer", "number", name);
    return field.cuts.map(([, , cut]) => (answer >= cut ? UNIT : -UNIT));
  };
  return { ...field, size: field.cuts.length, signs };
}

/** Of a choice the characters of its place in binary. */
function chosen({ id, ask, choices }, question) {
  const size = 2 ** Math.ceil(Math.log2(choices.length)) - 1;
  const numbers = Array.from({ length: size }, (_, index) => index + 1);
  const codes = choices.map((_, place) => numbers.map((number) => character(place & number)));
  const placeOf = choiceIndex({ id: `${question}.${id}`, choices });
  const signs = (answer) => codes[placeOf(answer)];
  return { id, ask, choices, size, signs };
}

/** 1 where a number has an even number of binary ones, else −1, in units of 2**-20. */
function character(bits) {
  let sign = UNIT;
  for (let rest = bits; rest; rest &= rest - 1) sign = -sign;
  return sign;
}
