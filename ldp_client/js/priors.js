/** The priors that a study may state; devices only check them (schemas/priors.py has the names' meanings). */

import { isBelow } from "./rational.js";
import { anyListOf, check, constant, decimal, isObject, record, tagged } from "./shapes.js";

const ANY = decimal(Boolean);
const POSITIVE = decimal(([n]) => n > 0n);
const EACH = anyListOf(POSITIVE, 2, 10000);

const family = (name, parameters) => ({
  [name]: record({ distribution: constant(name), ...parameters }),
});
const NORMAL = family("normal", { loc: ANY, scale: POSITIVE });
const STUDENT = family("student_t", { degrees_of_freedom: POSITIVE, loc: ANY, scale: POSITIVE });
const HALF_LINE = {
  ...family("half_normal", { scale: POSITIVE }),
  ...family("log_normal", { loc: ANY, scale: POSITIVE }),
  ...family("gamma", { shape: POSITIVE, rate: POSITIVE }),
  ...family("inverse_gamma", { shape: POSITIVE, scale: POSITIVE }),
};

function uniform(low, high) {
  const { uniform: read } = family("uniform", { low: ANY, high: ANY });
  return {
    uniform(value, path) {
      const found = read(value, path);
      check(found.low[2] < found.high[2], `${path}.high`, "must be above low");
      check(!low || !isBelow(found.low, low), `${path}.low`, "is out of range");
      check(!high || !isBelow(high, found.high), `${path}.high`, "is out of range");
      return found;
    },
  };
}

const concentration = (value, path) => (Array.isArray(value) ? EACH : POSITIVE)(value, path);
const taking = (...families) => tagged("distribution", Object.assign({}, ...families));
const ofFeatures = (item) => (value, path) => {
  check(isObject(value) && Object.keys(value).length, path, "must have a distribution for each feature id");
  return Object.fromEntries(
    Object.entries(value).map(([name, entry]) => [name, item(entry, `${path}.${name}`)]),
  );
};

const ZERO = [0n, 1n];
const ONE = [1n, 1n];
const REAL = taking(NORMAL, STUDENT, uniform());
const POSITIVE_ONE = taking(HALF_LINE, uniform(ZERO));
const SHARE = taking(family("beta", { a: POSITIVE, b: POSITIVE }), uniform(ZERO, ONE));
const FEATURES = {
  centre: REAL,
  coefficients: ofFeatures(taking(NORMAL, STUDENT)),
  feature_mean: ofFeatures(taking(NORMAL, STUDENT)),
  feature_sd: ofFeatures(taking(HALF_LINE)),
  feature_correlation: taking(family("lkj", { concentration: POSITIVE })),
};

/** The parameters of each model whose prior a study may state. */
export const PRIORS = {
  normal: { mean: REAL, sd: POSITIVE_ONE },
  exponential: { rate: POSITIVE_ONE },
  bernoulli: { p: SHARE },
  multinomial: { p: taking(family("dirichlet", { concentration })) },
  linear_regression: { sd: POSITIVE_ONE, ...FEATURES },
  logistic_regression: FEATURES,
};

/** A question's priors speak of its own features and choices. */
export function checkPrior({ features, choices, model }, path) {
  for (const [name, prior] of Object.entries(model.prior ?? {})) {
    const where = `${path}.model.prior.${name}`;
    if (typeof prior.distribution !== "string") {
      const known = new Set(features.map(({ id }) => id));
      for (const id of Object.keys(prior)) check(known.has(id), `${where}.${id}`, "is no feature");
    } else if (Array.isArray(prior.concentration?.[0])) {
      const good = prior.concentration.length === choices.length;
      check(good, `${where}.concentration`, `must have ${choices.length} entries`);
    }
  }
}
