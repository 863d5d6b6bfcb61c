/** What an answer costs, and whether it may be given: once, and within the budget. */

import { fail } from "./errors.js";
import { mechanismFor } from "./mechanisms/index.js";
import { add, isBelow, nearest, subtract } from "./rational.js";

const ZERO = [0n, 1n];

/**
 * A study's questions as this device sees them: {asked, spend, problem, isFresh, mechanism}. spend: its row
 * of the ledger. problem: why it is not asked (again). isFresh: whether its answer is to be paid for.
 */
export function recall(study, memory) {
  return study.questions.map((asked) => {
    const mechanism = mechanismFor(asked);
    const spend = memory.spent.find((row) => row.study === study.id && row.question === asked.id);
    const problem = spend && "this device has answered it before";
    return { asked, spend, problem, isFresh: true, mechanism, ...mechanism.recall?.(study, memory, spend) };
  });
}

/** Throws "answered" or "budget"; else what answering the fresh questions costs, the dearest or each its own. */
export function costOf(study, recalled, spent, budget) {
  for (const { asked, problem } of recalled) if (problem) fail("answered", problem, asked.id);
  const costs = recalled.map(({ asked, isFresh }) => (isFresh ? asked.mechanism.epsilon : ZERO));
  const dearest = costs.reduce((most, cost) => (isBelow(most, cost) ? cost : most));
  const total = study.ask_one ? dearest : costs.reduce(add);
  const left = leftOf(budget, spent);
  if (isBelow(left, total)) {
    fail("budget", `answering costs epsilon ${nearest(total)}, but ${nearest(left)} of this device's budget is left`);
  }
  return costs.map((cost) => (study.ask_one ? dearest : cost));
}

/** What is left of a budget, exactly. */
export const leftOf = (budget, spent) => spent.map(({ epsilon }) => epsilon).reduce(subtract, budget);
