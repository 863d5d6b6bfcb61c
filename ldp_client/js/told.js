/** What a device has told so far: which study asked what, when, what that cost, and what became of the reports. */

import { add, nearest } from "./rational.js";
import { ZERO } from "./spending.js";

/** {limit, epsilon, delta, studies} of a ledger, as index.d.ts has it. */
export function told({ spent, reports }, budget) {
  const ids = new Set(spent.map(({ study }) => study));
  return {
    limit: nearest(budget.epsilon),
    ...costOf(spent),
    studies: Array.from(ids, (id) => ofStudy(id, spent.filter(isOf(id)), reports.filter(isOf(id)))),
  };
}

const isOf = (id) => ({ study }) => study === id;

function ofStudy(study, rows, reports) {
  // The latest words; an older ledger has none, nor days.
  const { title = study, owner = "" } = rows.at(-1);
  const collectors = [...reports, ...rows].map(({ collector }) => collector);
  return {
    study,
    title,
    owner,
    collector: collectors.find(Boolean) ?? "",
    days: [...new Set(rows.flatMap(({ days = [] }) => days))].sort(),
    // What was not drawn cost nothing.
    questions: rows.filter(({ epsilon }) => epsilon).map(({ asked, question }) => asked ?? question),
    ...costOf(rows),
    states: [...new Set(reports.map(({ state }) => state))],
  };
}

const costOf = (rows) => ({ epsilon: sum(rows, "epsilon"), delta: sum(rows, "delta") });

const sum = (rows, kind) => nearest(rows.map((row) => row[kind] ?? ZERO).reduce(add, ZERO));
