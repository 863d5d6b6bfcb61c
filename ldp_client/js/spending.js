/** What an answer costs, and whether it may be given: once, and within the budget. */

import { isAt } from "./address.js";
import { fail } from "./errors.js";
import { mechanismFor } from "./mechanisms/index.js";
import { add, isBelow, nearest, subtract } from "./rational.js";

export const ZERO = [0n, 1n];

/**
 * A study's questions as this device sees them: {asked, spend, problem, isFresh, mechanism}. spend: its row
 * of the ledger. problem: why it is not asked (again). isFresh: whether its answer is to be paid for.
 */
export function recall(study, memory, collector) {
  const rows = memory.spent.filter((row) => row.study === study.id);
  // Another collector's study of that id is another study, with versions of its own.
  const isPast = rows.some((row) => row.version >= study.version && row.digest !== study.digest && isAt(collector, row));
  // What was behind noise would leave in clear.
  const past = (isPast || study.wasAsked?.(rows)) && { problem: "is not newer" };
  return study.questions.map((asked) => {
    const mechanism = mechanismFor(asked);
    const spend = rows.find((row) => row.question === asked.id);
    return {
      asked,
      spend,
      problem: spend && "was answered before",
      isFresh: true,
      mechanism,
      ...mechanism.recall?.(study, memory, spend, collector),
      ...past,
    };
  });
}

/** Throws "answered" where a question was answered before, and "budget" where they cost more than is left. */
export function refuseSpending(study, recalled, spent, budget) {
  for (const { asked, problem } of recalled) if (problem) fail("answered", problem, asked.id);
  for (const kind in budget) {
    const cost = costOf(study, recalled, kind);
    const left = leftOf(budget, spent, kind);
    if (isBelow(left, cost)) fail("budget", `costs ${kind} ${nearest(cost)}, left is ${nearest(left)}`);
  }
}

/** The epsilon or delta of those questions that are fresh: their sum, or the largest where one is asked. */
export const costOf = (study, recalled, kind) =>
  recalled
    .map(({ asked, isFresh }) => (isFresh && asked.mechanism[kind]) || ZERO)
    .reduce(study.one?.dearer ?? add);

/**
 * What is left of a budget's epsilon or delta, exactly. What was not drawn costs nothing, and a ledger's older rows
 * have no delta.
 */
export const leftOf = (budget, spent, kind) =>
  spent.map((row) => row[kind] ?? ZERO).reduce(subtract, budget[kind]);
