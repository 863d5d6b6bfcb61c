/**
 * A permanent noisy answer, and fresh noise on it for each report (RAPPOR, Erlingsson et al. 2014): the
 * twin of ldp_client/mechanisms/memoized.py.
 */

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
 * isFresh, mechanism}. That mechanism repeats the permanent answer, or draws and keeps it. A question is known by its
 * id, whatever its words.
 */
function recallAnswer({ id: question, choices }, stages, study, memory, spend, origin) {
  const { permanent, instantaneous, ...mechanism } = stages;
  const stated = study.document.questions.find(({ id }) => id === question).mechanism;
  const noise = canonicalJson({ choices: choices.length, mechanism: stated });
  const rows = memory.permanent.filter((row) => row.origin === origin && row.study === study.id && row.question === question);
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
