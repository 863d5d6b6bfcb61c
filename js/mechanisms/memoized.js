/** A permanent noisy answer, and fresh noise for each report (RAPPOR, Erlingsson et al. 2014). */

import { canonicalJson } from "../encoding.js";
import { CHOICE_BITS, WORK_BITS, expEpsilonBelow } from "../noise_levels.js";
import { truthOrOther } from "../randomness.js";
import { isBelow } from "../integers.js";
import { check, epsilon, oneOf } from "../shapes.js";
import { checkOdds, choice, flipped, packBelow, trimmed, yesNo } from "./choice.js";
import { mechanism as response } from "./randomized_response.js";
import { mechanism as sue } from "./sue.js";

const ONE = 1n << WORK_BITS;
const WHOLE = 1n << CHOICE_BITS;
const STAGES = { randomized_response: responseTwice, sue: flipsTwice };

/** `permanent` is drawn once and kept, `instantaneous` for each report. ε is that of all reports. */
export const mechanism = {
  kinds: [choice, yesNo],
  parameters: { of: oneOf(...Object.keys(STAGES)), instantaneous_epsilon: epsilon },
  check({ ask, path, mechanism: { of, epsilon: all, instantaneous_epsilon: each } }) {
    check(isBelow(each, all), `${path}.mechanism.instantaneous_epsilon`);
    check(ask === "choice" || of !== "sue", `${path}.mechanism.of`);
  },
  build(question) {
    const { first, again, instantaneous } = STAGES[question.mechanism.of](question);
    const permanent = first.randomise;
    const randomise = (quantised, random) => instantaneous(permanent(quantised, random), random);
    const mechanism = { ...first, integers: { again }, permanent, instantaneous, randomise };
    return { ...mechanism, recall: recallAnswer.bind(null, question, mechanism) };
  },
};

/** k-ary randomized response of randomized response: again k-ary randomized response. */
function responseTwice(question) {
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

/** Every bit flipped twice: again symmetric unary encoding. */
function flipsTwice(question) {
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
  const { length } = question.choices;
  const instantaneous = (bits, random) => trimmed(flipped(bits, again, random), length);
  return { first, again, instantaneous };
}

/**
 * Return {problem, isFresh, mechanism} of a question as the device remembers it, known by its id.
 *
 * The mechanism repeats the permanent answer, or draws and keeps it.
 */
function recallAnswer({ id: question, choices }, stages, study, memory, spend, origin) {
  const { permanent, instantaneous, ...mechanism } = stages;
  const stated = study.document.questions.find(({ id }) => id === question).mechanism;
  const noise = canonicalJson({ choices: choices.length, mechanism: stated });
  const rows = memory.permanent.filter(
    (row) => row.origin === origin && row.study === study.id && row.question === question,
  );
  let [kept] = rows;
  let problem;
  // No permanent answer covers the cost of a version in which the question was not memoized.
  if (study.version <= spend?.version || (spend?.epsilon && !kept)) problem = "was answered before";
  if (kept && kept.noise !== noise) problem = "was answered with other noise";
  if (rows.some(({ answer }) => !answer.length)) problem = "was withdrawn";
  const randomise = (quantised, random) => {
    if (!kept) {
      kept = { origin, study: study.id, question, noise, answer: permanent(quantised, random) };
      memory.permanent.push(kept);
    }
    return instantaneous(kept.answer, random);
  };
  return { problem, isFresh: !kept, mechanism: { ...mechanism, randomise } };
}
