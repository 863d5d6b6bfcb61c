/** One record with noise on every entry: the twin of ldp_client/mechanisms/gaussian_record.py. */

import { coinThreshold, gaussianRadius } from "../noise_levels.js";
import { isqrt } from "../integers.js";
import { clipNorm, packSigned } from "../quantise.js";
import { truthOrOther } from "../randomness.js";
import { check, fraction } from "../shapes.js";
import { normal } from "../strips.js";
import { fieldsOf, record } from "./record.js";

const parameters = { delta: fraction, response_share: fraction };

/** Clipped features, and a number as response, with noise; a yes/no is true with T / 2**32, in one more byte. */
export const mechanism = { kinds: [record], parameters, build };

function build(question) {
  const {
    features, norm, response: { bounds },
    mechanism: { epsilon: [top, bottom], delta, response_share: [part, whole] },
  } = question;
  const isNumber = bounds ? 1 : 0;
  const entries = features.length + isNumber;
  // The response's share is one of ε, or of the square of the distance that the noise hides.
  const epsilonOf = (share) => [top * share, bottom * whole];
  const distance = gaussianRadius(epsilonOf(isNumber ? whole : whole - part), delta, entries);
  const ofResponse = isNumber ? (distance * distance * part) / whole : 0n;
  const radius = isqrt(distance * distance - ofResponse) / 2n;
  const grid = (radius * norm[1]) / norm[0];
  const size = isNumber ? Number(isqrt(ofResponse) / 2n) : 1;
  const threshold = coinThreshold(epsilonOf(part));
  const where = `${question.path}.mechanism`;
  check(grid, where);
  check(isNumber ? size : threshold, `${where}.response_share`);

  return {
    integers: { distance, radius, grid },
    payloadSize: 4 * entries + 1 - isNumber,
    quantise(answer) {
      const [scaled, responded] = fieldsOf(question, answer, Number(grid), size);
      return [...clipNorm(scaled, radius).map(Number), responded];
    },
    randomise(quantised, random) {
      const noisy = packSigned(normal(entries, random).map((noise, index) => quantised[index] + noise));
      if (isNumber) return noisy;
      return Uint8Array.of(...noisy, truthOrOther(+(quantised.at(-1) > 0), 2, threshold, random));
    },
  };
}
