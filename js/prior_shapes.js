/** The priors that a study may state. `make schemas` writes this file from ldp_client/documents. */

import { any, concentration, ofFeatures, positive, taking } from "./prior_kinds.js";

const FAMILIES = {
  normal: { loc: any, scale: positive },
  student_t: { degrees_of_freedom: positive, loc: any, scale: positive },
  half_normal: { scale: positive },
  log_normal: { loc: any, scale: positive },
  gamma: { shape: positive, rate: positive },
  inverse_gamma: { shape: positive, scale: positive },
  beta: { a: positive, b: positive },
  dirichlet: { concentration: concentration(() => POSITIVE) },
  lkj: { concentration: positive },
  uniform: { low: any, high: any },
};
const OF_EACH_REAL = "normal student_t";
const OF_EACH_POSITIVE = "gamma half_normal inverse_gamma log_normal";
const REAL = taking(FAMILIES, OF_EACH_REAL + " uniform");
const POSITIVE = taking(FAMILIES, OF_EACH_POSITIVE + " uniform", [0n, 1n]);
const SHARE = taking(FAMILIES, "beta uniform", [0n, 1n], [1n, 1n]);
const SIMPLEX = taking(FAMILIES, "dirichlet");
const CORRELATION = taking(FAMILIES, "lkj");
const EACH_REAL = ofFeatures(taking(FAMILIES, OF_EACH_REAL));
const EACH_POSITIVE = ofFeatures(taking(FAMILIES, OF_EACH_POSITIVE));
const SHARED = { centre: REAL, coefficients: EACH_REAL, feature_mean: EACH_REAL, feature_sd: EACH_POSITIVE, feature_correlation: CORRELATION };

export const PRIORS = {
  nonparametric: { refused: SHARE },
  normal: { mean: REAL, sd: POSITIVE, refused: SHARE },
  exponential: { rate: POSITIVE, refused: SHARE },
  lognormal: { log_mean: REAL, log_sd: POSITIVE, refused: SHARE },
  gamma: { shape: POSITIVE, mean: POSITIVE, refused: SHARE },
  weibull: { shape: POSITIVE, scale: POSITIVE, refused: SHARE },
  beta: { a: POSITIVE, b: POSITIVE, refused: SHARE },
  poisson: { rate: POSITIVE, refused: SHARE },
  geometric: { p: SHARE, refused: SHARE },
  bernoulli: { p: SHARE, refused: SHARE },
  multinomial: { p: SIMPLEX, refused: SHARE },
  linear_regression: { sd: POSITIVE, ...SHARED },
  logistic_regression: SHARED,
};
