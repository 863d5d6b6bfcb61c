/** What an answer costs, whether it may be given, and what is repeated: the twin of spending.py and memory.py. */

import { fail } from "./errors.js";
import { canonicalJson } from "./json.js";
import { mechanismFor } from "./mechanisms/index.js";
import { add, isBelow, nearest, subtract } from "./rational.js";

const ZERO = [0n, 1n];

/**
 * What this device knows of each question of a study: `spend` and `kept`, its rows of the ledger; `isFresh`,
 * whether noise on the true answer is still to be drawn; `problem`, why it is not asked (again).
 */
export function recall({ id, version, document, questions }, { spent, permanent }) {
  return questions.map((asked, index) => {
    const isOfIt = (row) => row.study === id && row.question === asked.id;
    const spend = spent.find(isOfIt);
    // What must stay the same for an answer to be repeated: everything but the words and the model.
    const { text, model, ...fixed } = document.questions[index];
    const fingerprint = canonicalJson(fixed);
    const kept = permanent.find(isOfIt) ?? { study: id, question: asked.id, fingerprint };
    const isAnotherRound = asked.mechanism.name === "memoized" && version > spend?.version;
    let problem;
    if (spend && !isAnotherRound) problem = "this device has answered it before";
    else if (kept.answer?.length === 0) problem = "was withdrawn from this device";
    else if (kept.fingerprint !== fingerprint) problem = "this device has answered it with other choices or noise";
    return { asked, spend, kept, isFresh: !kept.answer, problem };
  });
}

/** The question's mechanism; a memoized one repeats the permanent answer, or draws and keeps it. */
export function remembering({ asked, kept }) {
  const mechanism = mechanismFor(asked);
  if (!mechanism.permanent) return mechanism;
  const randomise = (quantised, random) =>
    mechanism.instantaneous((kept.answer ??= mechanism.permanent(quantised, random)), random);
  return { ...mechanism, randomise };
}

/** Throws "answered" or "budget"; else what a fresh question costs: its own ε, or the dearest if one is asked. */
export function refuse({ ask_one }, recalled, spent, budget) {
  for (const { asked, problem } of recalled) if (problem) fail("answered", problem, asked.id);
  const costs = recalled.filter(({ isFresh }) => isFresh).map(({ asked }) => asked.mechanism.epsilon);
  const dearest = costs.reduce((most, cost) => (isBelow(most, cost) ? cost : most), ZERO);
  const total = ask_one ? dearest : costs.reduce(add, ZERO);
  const left = leftOf(budget, spent);
  if (isBelow(left, total)) {
    fail("budget", `answering costs epsilon ${nearest(total)}, but ${nearest(left)} of this device's budget is left`);
  }
  return ({ asked }) => (ask_one ? dearest : asked.mechanism.epsilon);
}

/** What is left of a budget, exactly. */
export const leftOf = (budget, spent) => spent.map(({ epsilon }) => epsilon).reduce(subtract, budget);
