/** From a study's decimals to the integers that decide what is released, rounded towards privacy. */

import { expBounds, floorScaled, normalCdfBounds } from "./integers.js";

// The Laplace scale and the Gaussian standard deviation are 2**NOISE_BITS grid units, in every study.
export const NOISE_BITS = 20n;
// Probabilities of choice mechanisms are integers over 2**CHOICE_BITS.
export const CHOICE_BITS = 32n;
export const WORK_BITS = 128n;
const CDF_BITS = 256n;
const LARGEST_RADIUS = 64n << NOISE_BITS;
// The sampled normal is truncated at 16 standard deviations: total variation below 2**-188 a coordinate.
const TRUNCATION_BITS = 188n;

/** The largest known integer not above 2**WORK_BITS × e**epsilon. */
export const expEpsilonBelow = (epsilon) => expBounds(floorScaled(epsilon, WORK_BITS), WORK_BITS)[0];

/** N, for a data grid 0..N and Laplace scale 2**NOISE_BITS: the true epsilon is N / 2**NOISE_BITS. */
export const laplaceLevels = (epsilon) => floorScaled(epsilon, NOISE_BITS);

/** T = ⌈2**b / (1 + e**ε)⌉: a bit other than the true one is 1 with probability T / 2**b. */
export function unaryThreshold(epsilon) {
  const divisor = (1n << WORK_BITS) + expEpsilonBelow(epsilon);
  return ((1n << (CHOICE_BITS + WORK_BITS)) + divisor - 1n) / divisor;
}

/** ⌊2**b often·e**ε / (often·e**ε + seldom)⌋: `often` reports support the truth, `seldom` do not. */
export function truthThreshold(epsilon, often, seldom) {
  const growth = BigInt(often) * expEpsilonBelow(epsilon);
  return (growth << CHOICE_BITS) / (growth + (BigInt(seldom) << WORK_BITS));
}

/** T of a coin that shows the truth with probability T / 2**b; 0 where ε is too small or too large for one. */
export function coinThreshold(epsilon) {
  const threshold = truthThreshold(epsilon, 1, 1);
  const whole = 1n << CHOICE_BITS;
  return 2n * threshold > whole && threshold < whole ? threshold : 0n;
}

/**
 * The largest integer R so that noise of sd 2**NOISE_BITS hides an L2 distance of R; 0 if there is none.
 * Analytic Gaussian mechanism (Balle & Wang 2018), δ(R) evaluated from above.
 */
export function gaussianRadius(epsilon, delta, dimension) {
  let radius = 0n;
  for (let step = LARGEST_RADIUS; step; step >>= 1n) {
    if (radius === LARGEST_RADIUS) break;
    const found = deltaAbove(radius + step, epsilon, BigInt(dimension));
    if (found * delta[1] <= delta[0] << CDF_BITS) radius += step;
  }
  return radius;
}

/** 2**CDF_BITS × δ from above: Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), μ = radius / 2**NOISE_BITS. */
function deltaAbove(radius, epsilon, dimension) {
  const halfTop = (radius << CDF_BITS) >> (NOISE_BITS + 1n);
  const ratio = floorScaled(epsilon, NOISE_BITS + CDF_BITS) / radius;
  const likely = normalCdfBounds(halfTop - ratio + 1n, CDF_BITS)[1];
  const unlikely = normalCdfBounds(-halfTop - ratio - 2n, CDF_BITS)[0];
  const [growthLow, growthHigh] = expBounds(floorScaled(epsilon, CDF_BITS), CDF_BITS);
  const truncation = (((growthHigh + 1n + (1n << CDF_BITS)) * dimension) >> TRUNCATION_BITS) + 1n;
  return likely - ((unlikely * growthLow) >> CDF_BITS) + truncation;
}
