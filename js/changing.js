/** What becomes of reports that were made: that a person agrees, has another invitation, or wants them deleted. */

import { fail } from "./errors.js";
import { read } from "./pasted.js";

/** Change a report by {state it is in: what to change}; returns it. One that then has no state is dropped. */
export function move(memory, _, id, changes) {
  const report = memory.reports.find((one) => one.id === id);
  if (report) Object.assign(report, changes[report.state]);
  memory.reports = memory.reports.filter(({ state }) => state);
  return report;
}

/** Move the rows of former origins for good: an app that does not name them any more must not ask again. */
export function adopt({ spent, permanent, reports }, origin, former) {
  for (const row of [...spent, ...permanent, ...reports]) if (former.includes(row.origin)) row.origin = origin;
}

/**
 * What is held of answers to a study of that digest may leave: another tab may have drawn a report of another version
 * meanwhile, which nobody saw. Returns the study's report, none where nothing of it is left.
 */
export function consent(memory, origin, { digest }) {
  const report = memory.reports.findLast((one) => one.digest === digest && one.origin === origin);
  if (report?.state === "held") report.state = "queued";
  return report;
}

/** Another invitation for the latest report that waits to be sent: it had none, or one that was not taken. */
export function invite(memory, origin, studyId, given) {
  const invitation = read(given);
  const isIts = ofStudy(memory, origin, studyId);
  // Held, queued or uninvited.
  const waits = memory.reports.findLast((report) => isIts(report) && /^[hqu]/.test(report.state) && !report.token);
  if (!waits) return;
  waits.invitation = invitation;
  // A request for a token that was put off is one for another code now.
  delete waits.due;
  // Of another stratum, perhaps: the issuer may name its key.
  delete waits.asked?.isOther;
}

/** Wipe what is held of answers to a study, and have those reports deleted that may have left: how many these are. */
export function withdraw(memory, origin, studyId) {
  const isIts = ofStudy(memory, origin, studyId);
  for (const kept of memory.permanent.filter(isIts)) kept.answer = new Uint8Array();
  // A report that no collector was found for never left.
  const isLeft = (report) => !isIts(report) || (report.state !== "held" && report.publisher);
  memory.reports = memory.reports.filter(isLeft);
  // A refused one, too, may be there: an earlier attempt reached the collector, and its answer was lost.
  const asked = memory.reports.filter(isIts);
  for (const report of asked) {
    // It leaves at a moment of its own, but keeps that when it is withdrawn again.
    if (report.state !== "withdrawn") delete report.due;
    Object.assign(report, { state: "withdrawn", body: "", invitation: "" });
    delete report.token;
  }
  return asked.length;
}

/**
 * Whether a row is of a study of that id and of this device's collector. A mistyped id is an error: a 0 would say that
 * all is deleted.
 */
function ofStudy({ spent, reports }, origin, studyId) {
  const isIts = (row) => row.study === studyId && row.origin === origin;
  if (![...spent, ...reports].some(isIts)) fail("input", "was never answered", "study");
  return isIts;
}
