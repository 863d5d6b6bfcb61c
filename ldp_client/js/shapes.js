/**
 * The shapes that study documents are made of: (value, path) → parsed value, or an error that names
 * the path.
 */

import { fail } from "./errors.js";
import { isBelow, parseDecimal } from "./rational.js";

export const hasOwn = Object.hasOwn;

export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function check(good, path, problem) {
  if (!good) fail("study", problem, path);
}

/** A shape that leaves the value as it is. */
function plain(isGood, problem) {
  return (value, path) => {
    check(isGood(value), path, problem);
    return value;
  };
}

/** A string of 1 to `longest` characters. */
export function text(longest) {
  return plain(
    (value) =>
      typeof value === "string" &&
      value &&
      [...value].length <= longest &&
      !/\p{Surrogate}/u.test(value),
    `must be text, 1 to ${longest} long`,
  );
}

export const identifier = plain(
  (value) => typeof value === "string" && /^[a-z0-9][a-z0-9._-]{0,63}$/.test(value),
  "must be an id: 1 to 64 of a-z 0-9 . _ -",
);

export function oneOf(...values) {
  return plain((value) => values.includes(value), `must be one of ${values}`);
}

export function whole(low, high) {
  return plain(
    (value) => Number.isInteger(value) && value >= low && value <= high,
    `must be whole, ${low} to ${high}`,
  );
}

export const day = plain(isDay, "must be a day: YYYY-MM-DD");

function isDay(value) {
  if (typeof value !== "string" || !/^(?!0000)\d{4}-\d\d-\d\d$/.test(value)) return false;
  const date = new Date(`${value}T00:00:00Z`);
  return !isNaN(date) && date.toISOString().startsWith(value);
}

/** An exact decimal in a string, of which [numerator, denominator] is good. */
export function decimal(isGood) {
  return (value, path) => {
    const number = typeof value === "string" && parseDecimal(value);
    check(number, path, "must be a decimal in a string");
    check(isGood(number), path, "is out of range");
    return number;
  };
}

/** Privacy of a question, in nats. */
export const epsilon = decimal(([n, d]) => n > 0n && n <= 64n * d);

/** Strictly between 0 and 1. */
export const fraction = decimal(([n, d]) => n > 0n && n < d);

export function bounds(value, path) {
  check(Array.isArray(value) && value.length === 2, path, "must be [low, high]");
  const [low, high] = value.map((entry, index) => decimal(Boolean)(entry, `${path}[${index}]`));
  check(isBelow(low, high), path, "low must be below high");
  return [low, high];
}

/** A list of `fewest` to `most` items of one shape, no two alike; `key`: no two with the same one. */
export function listOf(item, fewest, most, key) {
  return (value, path) => {
    const good = Array.isArray(value) && value.length >= fewest && value.length <= most;
    check(good, path, `must be a list of ${fewest} to ${most}`);
    const items = value.map((entry, index) => item(entry, `${path}[${index}]`));
    const seen = new Set();
    items.forEach((entry, index) => {
      const name = key ? entry[key] : entry;
      check(!seen.has(name), `${path}[${index}]${key ? `.${key}` : ""}`, "stands twice");
      seen.add(name);
    });
    return items;
  };
}

/** An object with exactly these fields; `optional` ones may be left out. */
export function record(required, optional) {
  return (value, path) => {
    check(isObject(value), path, "must be an object");
    const prefix = path && `${path}.`;
    const fields = { ...required, ...optional };
    for (const key of Object.keys(value).sort()) check(hasOwn(fields, key), prefix + key, "unknown field");
    for (const key in required) check(hasOwn(value, key), prefix + key, "is missing");
    const parsed = {};
    for (const key in fields) if (hasOwn(value, key)) parsed[key] = fields[key](value[key], prefix + key);
    return parsed;
  };
}
