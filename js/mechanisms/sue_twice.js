/** Both stages of a memoized answer by flipped bits. */

import { CHOICE_BITS, WORK_BITS, expEpsilonBelow } from "../noise_levels.js";
import { checkOdds } from "./choice.js";
import { mechanism as sue } from "./sue.js";
import { flipped } from "./unary.js";

const ONE = 1n << WORK_BITS;
const WHOLE = 1n << CHOICE_BITS;

/** Every bit flipped twice: again symmetric unary encoding. */
export function stages(question) {
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
