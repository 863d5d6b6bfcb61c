/**
 * A permanent noisy answer, and fresh noise on it for each report (RAPPOR, Erlingsson et al. 2014): the
 * twin of ldp_client/mechanisms/memoized.py.
 */

import { CHOICE_BITS, WORK_BITS, expEpsilonBelow } from "../noise_levels.js";
import { canonicalJson } from "../json.js";
import { truthOrOther } from "../randomness.js";
import { isBelow } from "../rational.js";
import { check, epsilon, oneOf } from "../shapes.js";
import { checkOdds, choice, packBelow, yesNo } from "./choice.js";
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
  kinds: [choice, yesNo],
  parameters: { of: oneOf("randomized_response", "sue"), instantaneous_epsilon: epsilon },
  check({ ask, path, mechanism: { of, epsilon: all, instantaneous_epsilon: one } }) {
    check(isBelow(one, all), `${path}.mechanism.instantaneous_epsilon`);
    check(ask === "choice" || of !== "sue", `${path}.mechanism.of`);
  },
  build(question) {
    const { first, again, instantaneous } = (question.mechanism.of === "sue" ? sueTwice : responseTwice)(question);
    const permanent = first.randomise;
    const randomise = (quantised, random) => instantaneous(permanent(quantised, random), random);
    const mechanism = { ...first, integers: { again }, permanent, instantaneous, randomise };
    return { ...mechanism, recall: recallAnswer.bind(null, question, mechanism) };
  },
};

/**
 * What a device remembers of the question, which each higher version of its study may ask again: {problem,
 * isFresh, mechanism}. That mechanism repeats the permanent answer, or draws and keeps it.
 */
function recallAnswer({ id: name }, { permanent, instantaneous, ...mechanism }, study, memory, spend) {
  const { id, version, told } = study;
  let fingerprint;
  // What a person is asked, in each language: all but noise, model and order.
  const words = told.map(({ title, questions }) => {
    const { model, ordered, text = title, ...fixed } = questions.find((one) => one.id === name);
    fingerprint ??= canonicalJson(fixed);
    return canonicalJson({ ...fixed, text, mechanism: 0 });
  });
  const rows = memory.permanent.filter((row) => row.study === id && row.question === name);
  // The same in more languages, or fewer; one in which it asks another thing makes it a new question. An older ledger
  // did not keep the words: they are those that it is asked in next.
  let kept = rows.find(({ words: before, fingerprint: older }) =>
    before ? isWithin(words, [before].flat()) || isWithin([before].flat(), words) : older === fingerprint,
  );
  let problem;
  // Also by a version in which it was not memoized, so that no permanent answer covers what it cost.
  if (version <= spend?.version || (spend?.epsilon?.[0] && !rows[0])) problem = "was answered before";
  if (kept && noiseOf(kept.fingerprint) !== noiseOf(fingerprint)) problem = "was answered with other noise";
  if (rows.some(({ answer }) => !answer.length)) problem = "was withdrawn";
  const randomise = (quantised, random) => {
    if (!kept) {
      memory.permanent.push((kept = { study: id, question: name, fingerprint, answer: permanent(quantised, random) }));
    }
    kept.words = [...new Set([kept.words ?? [], ...words].flat())];
    return instantaneous(kept.answer, random);
  };
  return { problem, isFresh: !kept, mechanism: { ...mechanism, randomise } };
}

const isWithin = (some, all) => some.every((one) => all.includes(one));

const noiseOf = (fingerprint) => canonicalJson(JSON.parse(fingerprint).mechanism);

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
