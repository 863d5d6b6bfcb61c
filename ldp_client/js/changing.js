/** What a person changes about reports that were made: another invitation, or that they be deleted. */

import { utf8 } from "./digest.js";
import { fail } from "./errors.js";

/** Another invitation for the latest report that waits to be sent: it had none, or one that was not taken. */
export function invite(memory, studyId, invitation) {
  refuseUnknown(memory, studyId);
  // Held, queued or uninvited.
  const waits = memory.reports.findLast(({ study, state }) => study === studyId && /^[hqu]/.test(state));
  if (waits) waits.invitation = invitation;
}

/** Wipe what is held of answers to a study, and have those reports deleted that may have left: how many these are. */
export function withdraw(memory, studyId) {
  refuseUnknown(memory, studyId);
  for (const kept of memory.permanent) if (kept.study === studyId) kept.answer = new Uint8Array();
  // A report that no collector was found for never left. One of an older ledger may have.
  const isLeft = ({ study, state, publisher }) => study !== studyId || (state !== "held" && publisher !== "");
  memory.reports = memory.reports.filter(isLeft);
  // A refused one, too, may be there: an earlier attempt reached the collector, and its answer was lost.
  const asked = memory.reports.filter(({ study }) => study === studyId);
  for (const report of asked) {
    // What is sent about it has the report's size through a relay, also without it.
    const size = utf8(report.body).length || report.size;
    Object.assign(report, { state: "withdrawn", size, body: "", invitation: "" });
    delete report.token;
  }
  return asked.length;
}

/** A mistyped id is nobody's: a 0 would say that all is deleted. */
function refuseUnknown({ spent }, studyId) {
  if (!spent.some(({ study }) => study === studyId)) fail("input", "was never answered", "study");
}
