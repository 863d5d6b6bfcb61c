/** A number that people may prefer not to say: the twin of ldp_client/mechanisms/refusable.py. */

import { CHOICE_BITS, truthThreshold } from "./noise_levels.js";
import { truthOrOther } from "./randomness.js";
import { check } from "./shapes.js";

/** As many levels as all of ε hides, half of which are hidden by what the coin leaves. */
export function levelsBeside({ refusal: { share: [part, whole] }, mechanism: { epsilon } }, levelsOf) {
  const [top, bottom] = epsilon;
  const [all, half] = [levelsOf(epsilon), 2n * levelsOf([top * (whole - part), bottom * whole])];
  return all < half ? all : half;
}

/** null sends the noise of a number in the middle; a byte more says whether it was null, by a coin. */
export function refusable({ path, bounds, refusal: { share: [part, whole] }, mechanism: { epsilon } }, number) {
  const threshold = truthThreshold([epsilon[0] * part, epsilon[1] * whole], 1, 1);
  check(2n * threshold > 1n << CHOICE_BITS && threshold < 1n << CHOICE_BITS, `${path}.refusal.share`);
  const { levels } = number.integers;
  const middle = Number(levels / 2n);
  const [low, high] = bounds.map(([, , nearest]) => nearest);
  const quantise = (answer) => {
    const refused = answer === null;
    const index = number.quantise(refused ? (low + high) / 2 : answer);
    return [refused ? middle : index, Number(refused)];
  };
  const randomise = ([index, refused], random) =>
    Uint8Array.of(...number.randomise(index, random), truthOrOther(refused, 2, threshold, random));
  const { payloadSize } = number;
  return { ...number, integers: { levels, threshold }, payloadSize: payloadSize + 1, quantise, randomise };
}
