/** One record with noise on every entry: the twin of ldp_client/mechanisms/gaussian_record.py. */

import { CHOICE_BITS, gaussianRadius, truthThreshold } from "../calibration.js";
import { isqrt } from "../integers.js";
import { clipNorm } from "../quantise.js";
import { truthOrOther } from "../randomness.js";
import { fraction } from "../shapes.js";
import { normal } from "../strips.js";
import { packSigned, tooSmall } from "./base.js";
import { checkNames, checkRecord as check, record, units } from "./record.js";

/** Features clipped to the norm plus round(2**20 × N(0, 1)); then the response, by its kind. */
export const mechanism = {
  kinds: [record],
  parameters: { delta: fraction, response_share: fraction },
  check,
  build(question) {
    const { features, norm, response } = question;
    const { distance, radius, size, entries, fits, coin } = (response.bounds ? onGrid : byCoin)(question);
    const grid = (radius * norm[1]) / norm[0];
    if (grid < 1n) tooSmall(question, "mechanism");
    if (!fits) tooSmall(question, "mechanism.response_share");

    function quantise(answer) {
      checkNames(question, answer);
      const scaled = features.map((feature) => units(question, feature, answer, Number(grid)));
      return [...clipNorm(scaled, radius), units(question, response, answer, size)].map(Number);
    }

    function randomise(quantised, random) {
      const noisy = normal(entries, random).map((noise, index) => quantised[index] + noise);
      return Uint8Array.of(...packSigned(noisy), ...coin(quantised.at(-1) > 0, random));
    }

    const payloadSize = 4 * features.length + (response.bounds ? 4 : 1);
    return { integers: { distance, radius, grid }, payloadSize, quantise, randomise };
  },
};

/** The response is one more entry of the vector, on a grid of its own. */
function onGrid({ features, mechanism: { epsilon, delta, response_share: [part, whole] } }) {
  const entries = features.length + 1;
  const distance = gaussianRadius(epsilon, delta, entries);
  const square = distance * distance;
  const ofResponse = (square * part) / whole;
  const size = Number(isqrt(ofResponse) / 2n);
  return { distance, radius: isqrt(square - ofResponse) / 2n, size, entries, fits: size, coin: () => [] };
}

/** The response is one more byte, 0 or 1: the truth with probability T / 2**32. */
function byCoin({ features, mechanism: { epsilon: [top, bottom], delta, response_share: [part, whole] } }) {
  const entries = features.length;
  const distance = gaussianRadius([top * (whole - part), bottom * whole], delta, entries);
  const threshold = truthThreshold([top * part, bottom * whole], 2);
  const fits = 2n * threshold > 1n << CHOICE_BITS && threshold < 1n << CHOICE_BITS;
  const coin = (isYes, random) => [truthOrOther(Number(isYes), 2, threshold, random)];
  return { distance, radius: distance / 2n, size: 1, entries, fits, coin };
}
