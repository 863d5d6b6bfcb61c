/** The cost of an answer, and whether it is allowed: once, and within the budget. */

import { fail } from "./errors.js";
import { mechanismFor } from "./mechanisms/index.js";
import { add, isBelow, nearest, subtract } from "./rational.js";

export const ZERO = [0n, 1n];

/** Return a study's questions as {asked, spend (its row), problem, isFresh (costs something), mechanism}. */
export function recall(study, memory, origin) {
  const rows = memory.spent.filter((row) => row.study === study.id && row.origin === origin);
  // A lower version than one that was answered, or another document of the same version.
  const isPast = rows.some((row) => row.version >= study.version && row.digest !== study.digest);
  // A public field would send without noise what an earlier version asked behind noise.
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
      ...mechanism.recall?.(study, memory, spend, origin),
      ...past,
    };
  });
}

/** Throw "answered" for a repeated question, "budget" if a budget or a collector's part is exceeded. */
export function refuseSpending(study, recalled, spent, origin, budget, perCollector) {
  for (const { asked, problem } of recalled) if (problem) fail("answered", problem, asked.id);
  const refuseAbove = (limit, rows, kind, words) => {
    const cost = costOf(study, recalled, kind);
    const left = leftOf(limit, rows, kind);
    if (isBelow(left, cost)) fail("budget", `costs ${kind} ${nearest(cost)}, ${words} is ${nearest(left)}`);
  };
  for (const kind in budget) refuseAbove(budget[kind], spent, kind, "left");
  refuseAbove(perCollector, spent.filter((row) => row.origin === origin), "epsilon", "left for this collector");
}

/** The epsilon or delta of the fresh questions: their sum, or the largest for a study that asks one of them. */
export const costOf = (study, recalled, kind) =>
  recalled
    .map(({ asked, isFresh }) => (isFresh && asked.mechanism[kind]) || ZERO)
    .reduce(study.one?.dearer ?? add);

/** What rows leave of a limit of epsilon or delta, exactly. A question that was not drawn costs nothing. */
export const leftOf = (limit, rows, kind) => rows.map((row) => row[kind] ?? ZERO).reduce(subtract, limit);
