/**
 * A permanent noisy answer, and fresh noise on it for each report (RAPPOR, Erlingsson et al. 2014): the
 * twin of ldp_client/mechanisms/memoized.py.
 */

import { CHOICE_BITS, WORK_BITS, expEpsilonBelow } from "../calibration.js";
import { truthOrOther } from "../randomness.js";
import { check, epsilon, oneOf } from "../shapes.js";
import { isBelow } from "../rational.js";
import { checkOdds, packBelow } from "./choice.js";
import { mechanism as response } from "./randomized_response.js";
import { mechanism as sue } from "./sue.js";
import { flipped } from "./unary.js";

const ONE = 1n << WORK_BITS;
const WHOLE = 1n << CHOICE_BITS;

/**
 * `permanent` is to be drawn once and kept, `instantaneous` for each report; `randomise` does both. The
 * stated ε is that of all reports together.
 */
export const mechanism = {
  asks: ["choice", "yes_no"],
  parameters: { of: oneOf("randomized_response", "sue"), instantaneous_epsilon: epsilon },
  check({ ask, path, mechanism: { of, epsilon: all, instantaneous_epsilon: one } }) {
    check(isBelow(one, all), `${path}.mechanism.instantaneous_epsilon`, "must be below epsilon, which is for all reports");
    check(ask === "choice" || of !== "sue", `${path}.mechanism.of`, "must be randomized_response for a yes/no");
  },
  build(question) {
    const kind = question.mechanism.of === "sue" ? sueTwice : responseTwice;
    const { first, again, instantaneous } = kind(question);
    const permanent = first.randomise;
    const randomise = (quantised, random) => instantaneous(permanent(quantised, random), random);
    return { ...first, integers: { again }, permanent, instantaneous, randomise };
  },
};

/** k-ary randomized response of randomized response: again k-ary randomized response. */
function responseTwice(question) {
  const first = response.build(question);
  const { threshold } = first.integers;
  const choices = BigInt(question.choices.length);
  const others = choices - 1n;
  // p − q of both stages is the product of theirs, and (e**ε − 1) / (e**ε + k − 1) at most.
  const growth = expEpsilonBelow(question.mechanism.instantaneous_epsilon);
  const ofFirst = (growth + others * ONE) * (threshold * choices - WHOLE);
  const most = (WHOLE * (ofFirst + others * (growth - ONE) * WHOLE * others)) / (choices * ofFirst);
  const again = most < WHOLE ? most : WHOLE;
  const truth = threshold * again * others + (WHOLE - threshold) * (WHOLE - again);
  checkOdds(question, truth * others, WHOLE * WHOLE * others - truth);
  const instantaneous = (kept, random) => {
    const index = kept.reduce((total, byte) => 256 * total + byte, 0);
    return packBelow(truthOrOther(index, question.choices.length, again, random), kept.length);
  };
  return { first, again, instantaneous };
}

/** Every bit flipped twice: again symmetric unary encoding. */
function sueTwice(question) {
  const first = sue.build(question);
  const { threshold } = first.integers;
  // Both flips together are 1 / (1 + e**(ε/2)) at least.
  const [numerator, denominator] = question.mechanism.instantaneous_epsilon;
  const both = ONE + expEpsilonBelow([numerator, 2n * denominator]);
  const missing = ((ONE << CHOICE_BITS) - threshold * both) * WHOLE;
  const part = both * (WHOLE - 2n * threshold);
  const again = missing > 0n ? (missing + part - 1n) / part : 0n;
  const flips = threshold * (WHOLE - again) + (WHOLE - threshold) * again;
  const kept = WHOLE * WHOLE - flips;
  checkOdds(question, kept * kept, flips * flips);
  const instantaneous = (bits, random) => flipped(bits, again, question.choices.length, random);
  return { first, again, instantaneous };
}
