/** Gaussian noise on one record's second moments: the twin of ldp_client/mechanisms/gaussian_statistics.py. */

import { gaussianRadius } from "../noise_levels.js";
import { floorScaled, isqrt } from "../integers.js";
import { UNIT_BITS, clipNorm, packSigned } from "../quantise.js";
import { check, fraction } from "../shapes.js";
import { normal } from "../strips.js";
import { fieldsOf, record } from "./record.js";

const MULTIPLIER_BITS = 60n;
const HALF = 1n << (MULTIPLIER_BITS - 1n);

/** The upper triangle of vvᵀ, v = (constant, features…, response), plus round(2**20 × N(0, 1)). */
export const mechanism = { kinds: [record], parameters: { delta: fraction }, build };

function build(question) {
  const { norm, features, response, mechanism: stated } = question;
  const radius = floorScaled(norm, UNIT_BITS);
  const weight = isqrt((radius * radius) / 2n);
  const pairs = releasedPairs(features.length + 1, response.bounds);
  const distance = gaussianRadius(stated.epsilon, stated.delta, pairs.length);
  // So that any two records' integer statistics are at most `distance` apart in L2, rounding included.
  const room = distance - isqrt(BigInt(pairs.length - 1)) - 1n;
  check(room > 0n, `${question.path}.mechanism`);
  const squareNorm = radius * radius + 2n * weight * weight;
  const diagonal = (room << MULTIPLIER_BITS) / (isqrt(2n * squareNorm * squareNorm) + 1n);
  const off_diagonal = isqrt(2n * diagonal * diagonal);

  /** v in units of 2**-20, its features clipped to the norm. */
  const quantise = (answer) => {
    const [scaled, responded] = fieldsOf(question, answer, 2 ** UNIT_BITS, Number(weight));
    return [weight, ...clipNorm(scaled, radius), BigInt(responded)];
  };

  const randomise = (quantised, random) => {
    const noise = normal(pairs.length, random);
    const sums = pairs.map(([i, j], index) => {
      const exact = quantised[i] * quantised[j] * (i === j ? diagonal : off_diagonal);
      return Number((exact + HALF) >> MULTIPLIER_BITS) + noise[index];
    });
    return packSigned(sums);
  };

  const integers = { radius, weight, distance, diagonal, off_diagonal };
  return { integers, payloadSize: 4 * pairs.length, quantise, randomise, says: "products" };
}

/** The pairs (i, j), i ≤ j ≤ last, without those whose product is known: the constant's, and a yes/no's. */
function releasedPairs(last, isNumber) {
  const pairs = [];
  for (let i = 0; i <= last; i++) for (let j = i; j <= last; j++) pairs.push([i, j]);
  return pairs.filter(([i, j]) => i < j || (i > 0 && (i < last || isNumber)));
}
