/** The priors that a study may state; devices only check them (ldp_client/documents/priors.py says what the names mean). */

import { isBelow } from "./rational.js";
import { check, decimal, isObject, oneOf, record } from "./shapes.js";

const MOST_CHOICES = 10000;

const any = decimal(Boolean);
const positive = decimal(([n]) => n > 0n);

/** One for all choices, a list with one for each, or the law of one that is not known. */
function concentration(value, path) {
  if (isObject(value)) return length(value, path);
  if (!Array.isArray(value)) return positive(value, path);
  check(value.length > 1 && value.length <= MOST_CHOICES, path);
  return value.map((entry, index) => positive(entry, `${path}[${index}]`));
}

const FAMILIES = {
  normal: { loc: any, scale: positive },
  student_t: { degrees_of_freedom: positive, loc: any, scale: positive },
  half_normal: { scale: positive },
  log_normal: { loc: any, scale: positive },
  gamma: { shape: positive, rate: positive },
  inverse_gamma: { shape: positive, scale: positive },
  beta: { a: positive, b: positive },
  dirichlet: { concentration },
  lkj: { concentration: positive },
  uniform: { low: any, high: any },
};

/** A prior of one of these families; a uniform one within the limits. */
function taking(names, least, most) {
  return (value, path) => {
    check(isObject(value), path);
    const distribution = oneOf(...names);
    const name = distribution(value.distribution, `${path}.distribution`);
    const found = record({ distribution, ...FAMILIES[name] })(value, path);
    if (found.low) {
      check(found.low[2] < found.high[2], `${path}.high`);
      check(!least || !isBelow(found.low, least), `${path}.low`);
      check(!most || !isBelow(most, found.high), `${path}.high`);
    }
    return found;
  };
}

/** A prior for each of some features. */
const ofFeatures = (names) => (value, path) => {
  const entries = isObject(value) ? Object.entries(value) : [];
  check(entries.length, path);
  entries.forEach(([name, entry]) => taking(names)(entry, `${path}.${name}`));
  return { features: Object.keys(value) };
};

const NORMALS = ["normal", "student_t"];
const HALF_LINE = ["half_normal", "log_normal", "gamma", "inverse_gamma"];
const ZERO = [0n, 1n];
const real = taking([...NORMALS, "uniform"]);
const length = taking([...HALF_LINE, "uniform"], ZERO);
const share = taking(["beta", "uniform"], ZERO, [1n, 1n]);
const FEATURES = {
  centre: real,
  coefficients: ofFeatures(NORMALS),
  feature_mean: ofFeatures(NORMALS),
  feature_sd: ofFeatures(HALF_LINE),
  feature_correlation: taking(["lkj"]),
};

/** The parameters of each model whose prior a study may state. */
const PRIORS = {
  normal: { mean: real, sd: length },
  exponential: { rate: length },
  lognormal: { log_mean: real, log_sd: length },
  gamma: { shape: length, mean: length },
  weibull: { shape: length, scale: length },
  beta: { a: length, b: length },
  poisson: { rate: length },
  geometric: { p: share },
  bernoulli: { p: share },
  multinomial: { p: taking(["dirichlet"]) },
  linear_regression: { sd: length, ...FEATURES },
  logistic_regression: FEATURES,
};

/** A question's priors fit its model, and speak of its own features and choices. Throws LdpkitError "study". */
export function checkPriors({ features, choices, model, path }) {
  const where = `${path}.model.prior`;
  for (const [name, prior] of Object.entries(record({}, PRIORS[model.name])(model.prior, where))) {
    for (const id of prior.features ?? []) {
      const known = features.some((feature) => feature.id === id);
      check(known, `${where}.${name}.${id}`);
    }
    const listed = Array.isArray(prior.concentration?.[0]) && prior.concentration.length;
    check(!listed || listed === choices.length, `${where}.${name}.concentration`);
  }
}
