/** What a device has told so far: which study asked what, when, what that cost, and the states of the reports. */

import { add, nearest } from "./rational.js";
import { ZERO } from "./spending.js";

/** {limit, epsilon, delta, studies} of a ledger, as index.d.ts has it. One id at two origins is two studies. */
export function told({ spent, reports }, budget) {
  const studies = {};
  for (const row of [...spent, ...reports]) (studies[`${row.study} ${row.origin}`] ??= []).push(row);
  return { limit: nearest(budget.epsilon), ...costOf(spent), studies: Object.values(studies).map(ofStudy) };
}

function ofStudy(all) {
  const [{ study, origin }] = all;
  const rows = all.filter(({ question }) => question);
  const { title = study, owner = "" } = rows.at(-1) ?? {};
  const days = [...new Set(rows.flatMap((row) => row.days))].sort();
  // A question that was not drawn cost nothing.
  const questions = rows.filter(({ epsilon }) => epsilon).map(({ asked }) => asked);
  const states = [...new Set(all.map(({ state }) => state).filter(Boolean))];
  return { study, title, owner, origin, days, questions, ...costOf(rows), states };
}

const costOf = (rows) => ({ epsilon: sum(rows, "epsilon"), delta: sum(rows, "delta") });

const sum = (rows, kind) => nearest(rows.map((row) => row[kind] ?? ZERO).reduce(add, ZERO));
