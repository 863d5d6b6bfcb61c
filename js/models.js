/** The models that a study may name. `make schemas` writes this file from ldp_client/documents. */

export const number = ["nonparametric", "normal", "exponential", "lognormal", "gamma", "weibull", "beta", "poisson", "geometric"];
export const choice = ["multinomial"];
export const yes_no = ["bernoulli"];
export const record = ["linear_regression", "logistic_regression"];
