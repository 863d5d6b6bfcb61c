/** One record with noise on every entry: the twin of ldp_client/mechanisms/gaussian_record.py. */

import { CHOICE_BITS, gaussianRadius, truthThreshold } from "../calibration.js";
import { isqrt } from "../integers.js";
import { clipNorm } from "../quantise.js";
import { truthOrOther } from "../randomness.js";
import { normal } from "../strips.js";
import { concat, packSigned, tooSmall } from "./base.js";
import { checkNames, units } from "./record.js";

/** Features clipped to the norm plus round(2**20 × N(0, 1)); then the response, by its kind. */
export const mechanism = (question) => (question.response.bounds ? numberRecord : yesNoRecord)(question);

/** The grid on which clipped features have at most half of `distance` as their norm. */
function gridOf(question, distance) {
  const radius = distance / 2n;
  const grid = (radius * question.norm[1]) / question.norm[0];
  if (grid < 1n) tooSmall(question, "mechanism");
  return { radius, grid };
}

function fields(question, answer, grid, radius) {
  checkNames(question, answer);
  return clipNorm(question.features.map((feature) => units(question, feature, answer, Number(grid))), radius).map(Number);
}

const noisy = (values, random) => {
  const noise = normal(values.length, random);
  return packSigned(values.map((value, index) => value + noise[index]));
};

/** The response is one more entry of the vector, on a grid of its own. */
function numberRecord(question) {
  const { features, response, mechanism: stated } = question;
  const distance = gaussianRadius(stated.epsilon, stated.delta, features.length + 1);
  const square = distance * distance;
  const ofResponse = (square * stated.response_share[0]) / stated.response_share[1];
  const { radius, grid } = gridOf(question, isqrt(square - ofResponse));
  const response_grid = isqrt(ofResponse) / 2n;
  if (response_grid < 1n) tooSmall(question, "mechanism.response_share");
  const quantise = (answer) => [
    ...fields(question, answer, grid, radius),
    Number(units(question, response, answer, Number(response_grid))),
  ];
  const integers = { distance, radius, grid };
  return { integers, payloadSize: 4 * (features.length + 1), quantise, randomise: noisy };
}

/** The response is one more byte, 0 or 1: the truth with probability T / 2**32. */
function yesNoRecord(question) {
  const { features, response, mechanism: stated } = question;
  const [[top, bottom], [part, whole]] = [stated.epsilon, stated.response_share];
  const distance = gaussianRadius([top * (whole - part), bottom * whole], stated.delta, features.length);
  const { radius, grid } = gridOf(question, distance);
  const threshold = truthThreshold([top * part, bottom * whole], 2);
  const other = (1n << CHOICE_BITS) - threshold;
  if (threshold <= other || other < 1n) tooSmall(question, "mechanism.response_share");
  const quantise = (answer) => [
    ...fields(question, answer, grid, radius),
    Number(units(question, response, answer, 1) > 0n),
  ];
  const randomise = (quantised, random) =>
    concat(noisy(quantised.slice(0, -1), random), [truthOrOther(quantised.at(-1), 2, threshold, random)]);
  return { integers: { distance, radius, grid }, payloadSize: 4 * features.length + 1, quantise, randomise };
}
