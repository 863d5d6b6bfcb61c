/** The shapes that study documents are made of: (value, path) → parsed value, or an error that names the path. */

import { fail } from "./errors.js";
import { parseDecimal } from "./integers.js";

export const hasOwn = Object.hasOwn;

export const isText = (value) => typeof value === "string";

export const isObject = (value) => Object(value) === value && !Array.isArray(value);

/** Throws LdpkitError "study" unless it is good. Why it is not is for the study's author, not for a phone. */
export function check(good, path) {
  if (!good) fail("study", "see `ldpkit check`", path);
}

/** Throw "answer" unless it has exactly these names; "input" for all answers, which have no path. */
export function checkNames(answer, names, path) {
  if (!isObject(answer)) fail(path ? "answer" : "input", "object", path ?? "answers");
  for (const name of names) if (!hasOwn(answer, name)) fail("answer", "missing", path ? `${path}.${name}` : name);
  for (const name in answer) if (!names.includes(name)) fail("answer", "unasked", path ?? name);
}

/** A shape that leaves the value as it is. */
export function plain(isGood) {
  return (value, path) => {
    check(isGood(value), path);
    return value;
  };
}

/** Whether a string has neither half of a surrogate pair nor U+0000. */
const isWhole = (value) => !/[\p{Cs}\0]/u.test(value);

/** A string of 1 to `longest` characters, none of them U+0000. */
export const text = (longest) =>
  plain((value) => isText(value) && value && [...value].length <= longest && isWhole(value));

export const matching = (pattern) => plain((value) => isText(value) && pattern.test(value));

export const identifier = matching(/^[a-z\d][a-z\d._-]{0,63}$/);

/** What another reader needs: a device only checks that it has one canonical text. */
export function ignored(value, path, left = 16) {
  check(left, path);
  if (isText(value)) return check(isWhole(value), path);
  check(Object(value) === value || value === !!value || Number.isSafeInteger(value), path);
  for (const key in value) {
    // Platforms sort other characters in different orders.
    check(/^[ -~]*$/.test(key), path);
    ignored(value[key], path, left - 1);
  }
}

export const oneOf = (...values) => plain((value) => values.includes(value));

export const whole = (low, high) =>
  plain((value) => Number.isInteger(value) && value >= low && value <= high);

/** An exact decimal in a string, of which [numerator, denominator] is good. */
export function decimal(isGood) {
  return (value, path) => {
    const number = isText(value) && parseDecimal(value);
    check(number && isGood(number), path);
    return number;
  };
}

/** Privacy of a question, in nats. */
export const epsilon = decimal(([n, d]) => n > 0n && n <= 64n * d);

/** Strictly between 0 and 1. */
export const fraction = decimal(([n, d]) => n > 0n && n < d);

export function bounds(value, path) {
  const both = listOf(decimal(Boolean), 2, 2)(value, path);
  // Also as the nearest floats, in which answers are compared with them.
  check(both[0][2] < both[1][2], path);
  return both;
}

/** A list of `fewest` to `most` items of one shape, no two alike; `key`: no two with the same one. */
export function listOf(item, fewest, most, key) {
  return (value, path) => {
    check(Array.isArray(value) && value.length >= fewest && value.length <= most, path);
    const items = value.map((entry, index) => item(entry, `${path}[${index}]`));
    const seen = new Set();
    items.forEach((entry, index) => {
      const name = entry[key] ?? entry;
      check(!seen.has(name), `${path}[${index}]${key ? `.${key}` : ""}`);
      seen.add(name);
    });
    return items;
  };
}

/** An object with exactly these fields; `optional` ones may be left out. */
export function record(required, optional) {
  return (value, path) => {
    check(isObject(value), path);
    const prefix = path && `${path}.`;
    const fields = { ...required, ...optional };
    for (const key in value) check(hasOwn(fields, key), prefix + key);
    for (const key in required) check(hasOwn(value, key), prefix + key);
    const parsed = {};
    for (const key in fields) if (hasOwn(value, key)) parsed[key] = fields[key](value[key], prefix + key);
    return parsed;
  };
}
