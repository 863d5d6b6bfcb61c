/**
 * A permanent noisy answer, and fresh noise on it for each report (RAPPOR, Erlingsson et al. 2014): the
 * twin of ldp_client/mechanisms/memoized.py.
 */

import { isAt } from "../address.js";
import { canonicalJson } from "../json.js";
import { isBelow } from "../rational.js";
import { check, epsilon, oneOf } from "../shapes.js";
import { choice, yesNo } from "./choice.js";

const STAGES = {
  randomized_response: () => import("./response_twice.js"),
  sue: () => import("./sue_twice.js"),
};

/**
 * `permanent` is to be drawn once and kept, `instantaneous` for each report; `randomise` does both. The
 * stated ε is that of all reports together.
 */
export const mechanism = {
  kinds: [choice, yesNo],
  parameters: { of: oneOf("randomized_response", "sue"), instantaneous_epsilon: epsilon },
  async check(question) {
    const { ask, path, mechanism: { of, epsilon: all, instantaneous_epsilon: one } } = question;
    check(isBelow(one, all), `${path}.mechanism.instantaneous_epsilon`);
    check(ask === "choice" || of !== "sue", `${path}.mechanism.of`);
    question.stages = (await STAGES[of]()).stages;
  },
  build(question) {
    const { first, again, instantaneous } = question.stages(question);
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
function recallAnswer({ id: name }, { permanent, instantaneous, ...mechanism }, study, memory, spend, collector) {
  const { id, version, told } = study;
  let fingerprint;
  // What a person is asked, in each language: all but noise, model and order.
  const words = told.map(({ questions, sections, title: all }) => {
    const { title } = sections?.find((one) => one.questions.includes(name)) ?? { title: all };
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
  // Another collector's study of that id is another study, and its permanent answer tells this one nothing new.
  if (spend && !isAt(collector, spend)) problem = `was answered before, to ${spend.collector}`;
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
