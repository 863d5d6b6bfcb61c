/** Both stages of a memoized answer by randomized response. */

import { CHOICE_BITS, WORK_BITS, expEpsilonBelow } from "../noise_levels.js";
import { truthOrOther } from "../randomness.js";
import { checkOdds, packBelow } from "./choice.js";
import { mechanism as response } from "./randomized_response.js";

const ONE = 1n << WORK_BITS;
const WHOLE = 1n << CHOICE_BITS;

/** k-ary randomized response of randomized response: again k-ary randomized response. */
export function stages(question) {
  const first = response.build(question);
  const { threshold } = first.integers;
  const { length } = question.choices;
  const choices = BigInt(length);
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
    return packBelow(truthOrOther(index, length, again, random), kept.length);
  };
  return { first, again, instantaneous };
}
