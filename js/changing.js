/** What a person does with reports: see what was told, agree, give another ticket, or have them deleted. */

import { fail } from "./errors.js";
import { ZERO, add, nearest } from "./integers.js";
import { isText } from "./shapes.js";

/** Change a report by {state it is in: what to change}; returns it. One that then has no state is dropped. */
export function move(memory, _, id, changes) {
  const report = memory.reports.find((other) => other.id === id);
  if (report) Object.assign(report, changes[report.state]);
  memory.reports = memory.reports.filter(({ state }) => state);
  return report;
}

/** Move the rows of former origins for good: an app that does not name them any more must not ask again. */
export function adopt({ spent, permanent, reports }, origin, former) {
  for (const row of [...spent, ...permanent, ...reports]) if (former.includes(row.origin)) row.origin = origin;
}

/** Let the held report of this version leave, if it is held still. Return the report of the version. */
export function consent(memory, origin, { digest }) {
  const report = memory.reports.findLast((other) => other.digest === digest && other.origin === origin);
  if (report?.state === "held") report.state = "queued";
  return report;
}

/** Return a ticket without what surrounded it in a letter, or that of a whole link. */
export function readTicket(given) {
  if (!isText(given)) fail("input", "must be text", "ticket");
  const ends = /^["'<>()[\],.;:`]+|["'<>()[\],.;:`]+$/g;
  return given.replace(/[^!-~]/g, "").split("#ticket=").at(-1).replace(ends, "");
}

/** Give another ticket to the latest report that waits to be sent. */
export function giveTicket(memory, origin, studyId, given) {
  const ticket = readTicket(given);
  const isIts = ofStudy(memory, origin, studyId);
  // Held, queued or ticketless.
  const waits = memory.reports.findLast((report) => isIts(report) && /^[hqt]/.test(report.state) && !report.token);
  if (!waits) return;
  waits.ticket = ticket;
  // A request for a token that was put off is one for another code now.
  delete waits.due;
  // Of another stratum, perhaps: the issuer may name its key.
  delete waits.asked?.isOther;
}

/** Wipe answers to a study. Return how many reports may have left, and are to be deleted. */
export function withdraw(memory, origin, studyId) {
  const isIts = ofStudy(memory, origin, studyId);
  for (const kept of memory.permanent.filter(isIts)) kept.answer = new Uint8Array();
  memory.reports = memory.reports.filter((report) => !isIts(report) || report.left);
  // A refused one, too, may be there: an earlier attempt reached the collector, and its answer was lost.
  const asked = memory.reports.filter(isIts);
  for (const report of asked) {
    // It leaves at a moment of its own, but keeps that when it is withdrawn again.
    if (report.state !== "withdrawn") delete report.due;
    delete report.token;
    Object.assign(report, { state: "withdrawn", body: "", ticket: "" });
  }
  return asked.length;
}

/** Return a test for rows of that study. A mistyped id is an error: a 0 would say that all is deleted. */
function ofStudy({ spent, reports }, origin, studyId) {
  const isIts = (row) => row.study === studyId && row.origin === origin;
  if (![...spent, ...reports].some(isIts)) fail("input", "was never answered", "study");
  return isIts;
}

/** {limit, epsilon, delta, studies} of a ledger, as index.d.ts has it. One id at two origins is two studies. */
export function told({ spent, reports }, budget) {
  const studies = {};
  for (const row of [...spent, ...reports]) (studies[`${row.study} ${row.origin}`] ??= []).push(row);
  return { limit: nearest(budget.epsilon), ...sumOf(spent), studies: Object.values(studies).map(disclosureOf) };
}

function disclosureOf(all) {
  const [{ study, origin }] = all;
  const rows = all.filter(({ question }) => question);
  const { title = study, owner = "" } = rows.at(-1) ?? {};
  const days = [...new Set(rows.flatMap((row) => row.days))].sort();
  // A question that was not drawn cost nothing.
  const questions = rows.filter(({ epsilon }) => epsilon).map(({ asked }) => asked);
  const states = [...new Set(all.map(({ state }) => state).filter(Boolean))];
  return { study, title, owner, origin, days, questions, ...sumOf(rows), states };
}

function sumOf(rows) {
  const sum = (kind) => nearest(rows.map((row) => row[kind] ?? ZERO).reduce(add, ZERO));
  return { epsilon: sum("epsilon"), delta: sum("delta") };
}
