/** What mechanisms for one bounded number share; people may prefer not to say it. */

import { coinThreshold } from "../noise_levels.js";
import { gridIndex, packSigned } from "../quantise.js";
import { truthOrOther } from "../randomness.js";
import { bounds, check, fraction, record, text } from "../shapes.js";

export const number = {
  ask: "number",
  fields: { bounds },
  more: { refusal: record({ share: fraction }), unit: text(40) },
};

/** Return the mechanism for a grid 0..levels, as fine as ε allows. stated: what decides that. */
export function noisyNumber(question, levelsOf, noise, stated) {
  const { id, path, bounds, refusal, mechanism: { epsilon } } = question;
  const levels = refusal ? levelsBeside(refusal, epsilon, levelsOf) : levelsOf(epsilon);
  check(levels, `${path}.${stated}`);
  const mechanism = {
    integers: { levels },
    payloadSize: 4,
    quantise: (answer) => gridIndex(answer, bounds, Number(levels), id),
    randomise: (quantised, random) => packSigned([quantised + noise(1, random)[0]]),
  };
  return refusal ? refusable(question, mechanism) : mechanism;
}

/** As many levels as all of ε hides, half of which are hidden by what the coin leaves. */
function levelsBeside({ share: [part, whole] }, epsilon, levelsOf) {
  const [top, bottom] = epsilon;
  const [all, half] = [levelsOf(epsilon), 2n * levelsOf([top * (whole - part), bottom * whole])];
  return all < half ? all : half;
}

/** null sends the noise of a number in the middle; a byte more says whether it was null, by a coin. */
function refusable({ path, bounds, refusal, mechanism: { epsilon } }, number) {
  const { integers: { levels }, payloadSize } = number;
  const [part, whole] = refusal.share;
  const threshold = coinThreshold([epsilon[0] * part, epsilon[1] * whole]);
  check(threshold, `${path}.refusal.share`);
  const middle = Number(levels / 2n);
  const [low, high] = bounds.map(([, , nearest]) => nearest);
  const quantise = (answer) => {
    const refused = answer === null;
    const index = number.quantise(refused ? (low + high) / 2 : answer);
    return [refused ? middle : index, Number(refused)];
  };
  const randomise = ([index, refused], random) =>
    Uint8Array.of(...number.randomise(index, random), truthOrOther(refused, 2, threshold, random));
  return { integers: { levels, threshold }, payloadSize: payloadSize + 1, quantise, randomise };
}
