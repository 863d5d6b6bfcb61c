/** What a device has told so far: which study asked what, when, what that cost, and what became of the reports. */

import { baseOf } from "./address.js";
import { add, nearest } from "./rational.js";
import { ZERO } from "./spending.js";

/** {limit, epsilon, delta, studies} of a ledger, as index.d.ts has it: one id at two collectors is two studies. */
export function told({ spent, reports }, budget) {
  const all = [...spent, ...reports];
  const studies = {};
  for (const one of all) {
    // An older ledger did not keep collectors: it is that of what else is known of the id.
    const { study, collector = all.find((other) => other.study === study && other.collector)?.collector } = one;
    (studies[`${study} ${collector ? baseOf(collector) : ""}`] ??= []).push(one);
  }
  return { limit: nearest(budget.epsilon), ...costOf(spent), studies: Object.entries(studies).map(ofStudy) };
}

function ofStudy([key, all]) {
  const [study, collector] = key.split(" ");
  const rows = all.filter(({ question }) => question);
  // The latest words; an older ledger has none, nor days. A memoized question's row is of who asked it last.
  const { title = study, owner = "" } = rows.at(-1) ?? {};
  return {
    study,
    title,
    owner,
    collector,
    days: [...new Set(rows.flatMap(({ days = [] }) => days))].sort(),
    // What was not drawn cost nothing.
    questions: rows.filter(({ epsilon }) => epsilon).map(({ asked, question }) => asked ?? question),
    ...costOf(rows),
    states: [...new Set(all.map(({ state }) => state).filter(Boolean))],
  };
}

const costOf = (rows) => ({ epsilon: sum(rows, "epsilon"), delta: sum(rows, "delta") });

const sum = (rows, kind) => nearest(rows.map((row) => row[kind] ?? ZERO).reduce(add, ZERO));
