/** What a parameter of a prior, or of a model, may be: (value, path) → parsed value. */

import { isBelow } from "./rational.js";
import { check, decimal, isObject, oneOf, record } from "./shapes.js";

const MOST_CHOICES = 10000;

export const any = decimal(Boolean);
export const positive = decimal(([n]) => n > 0n);

/** One for all choices, a list with one for each, or the law of one that is not known. */
export const concentration = (law) => (value, path) => {
  if (isObject(value)) return law()(value, path);
  if (!Array.isArray(value)) return positive(value, path);
  check(value.length > 1 && value.length <= MOST_CHOICES, path);
  return value.map((entry, index) => positive(entry, `${path}[${index}]`));
};

/** A prior of one of these families; a uniform one within the limits. */
export function taking(families, names, least, most) {
  return (value, path) => {
    check(isObject(value), path);
    const distribution = oneOf(...names.split(" "));
    const name = distribution(value.distribution, `${path}.distribution`);
    const found = record({ distribution, ...families[name] })(value, path);
    const { low, high } = found;
    if (low) {
      check(low[2] < high[2] && !(most && isBelow(most, high)), `${path}.high`);
      check(!least || !isBelow(low, least), `${path}.low`);
    }
    return found;
  };
}

/** A prior for each of some features. */
export const ofFeatures = (each) => (value, path) => {
  const entries = isObject(value) ? Object.entries(value) : [];
  check(entries.length, path);
  entries.forEach(([name, entry]) => each(entry, `${path}.${name}`));
  return { features: Object.keys(value) };
};
