/** A device: answers a study once, remembers that it did, and sends the report when the person agrees. */

import { fail } from "./errors.js";
import { openLedger } from "./ledger.js";
import { systemRandom } from "./randomness.js";
import { nearest, parseDecimal } from "./rational.js";
import { padding, perturbAnswers } from "./report.js";
import { leftOf, recall, refuse, remembering } from "./spending.js";
import { pause, put, remove } from "./upload.js";

// A device's calendar may be a day away from the collector's, which counts days in UTC.
const DAY_MS = 864e5;
const REQUESTS = { queued: put, uninvited: put, withdrawn: remove };

/**
 * Open the device of this browser profile and origin.
 *
 * maxEpsilon: the privacy budget over all studies, a decimal in a string. collector: its base URL.
 * Throws LdpkitError "ledger" where IndexedDB cannot be used, "input" for a bad maxEpsilon.
 *
 * A report is "held" until the person consents, then "queued", then "sent", "refused" (by the collector,
 * for good) or "uninvited" until it is given an invitation that the collector takes. A "withdrawn" one
 * has lost its body and waits for its deletion.
 */
export async function openDevice({
  maxEpsilon,
  collector = location.origin,
  name = "ldpkit",
  random = systemRandom,
}) {
  const budget = parseDecimal(maxEpsilon);
  if (!(budget?.[0] > 0n)) fail("input", "must be a decimal above 0, in a string", "maxEpsilon");
  const ledger = await openLedger(name);
  const read = (work) => ledger("readonly", work);
  const write = (work) => ledger("readwrite", work);

  /**
   * Perturb every answer once and write spends, permanent answers and report durably; the report is held
   * until `consent`. Throws LdpkitError "answer", "closed", "answered", "budget" or "ledger"; then no noise
   * was drawn, or it is lost.
   */
  async function answer(study, answers, invitation = "") {
    refuseOutsideWindow(study);
    return write((rows, { spent, permanent, reports }) => {
      const recalled = recall(study, rows);
      const costOf = refuse(study, recalled, rows.spent, budget);
      const mechanisms = recalled.map(remembering);
      const { id, body, answered } = perturbAnswers(study, answers, random, mechanisms);
      const origin = { study: study.id, version: study.version };
      for (const item of recalled) {
        const question = item.asked.id;
        const isCharged = item.isFresh && answered.includes(question);
        spent.put({ ...origin, question, epsilon: isCharged ? costOf(item) : (item.spend?.epsilon ?? [0n, 1n]) });
        if (item.kept.answer) permanent.put(item.kept);
      }
      const padded = study.ask_one ? body + padding(study, mechanisms, answered) : body;
      const report = { ...origin, id, body: padded, state: "held", invitation };
      reports.add(report);
      return report;
    });
  }

  /** Whether this device would refuse to answer the study (again), and its latest report that is left. */
  const status = (study) =>
    read((rows) => ({
      answered: recall(study, rows).some(({ problem }) => problem),
      report: rows.reports.filter((row) => row.study === study.id).sort((a, b) => b.version - a.version)[0],
    }));

  /** What is left of the budget. */
  const epsilonLeft = () => read(({ spent }) => nearest(leftOf(budget, spent)));

  /** Change the reports that `isChosen` chooses, and return those that are left. */
  const move = (isChosen, changes) => write((rows, stores) => change(rows, stores, isChosen, changes));

  /** The person agrees that the report which `status` shows for the study leaves. */
  async function consent(study) {
    const { report: shown } = await status(study);
    return (await move(({ id }) => id === shown?.id, { held: { state: "queued" } }))[0];
  }

  /** Give what waits to be sent to a study another invitation: it had none, or one that was not taken. */
  async function invite(studyId, invitation) {
    const changes = { held: { invitation }, queued: { invitation }, uninvited: { invitation, state: "queued" } };
    await move(({ study }) => study === studyId, changes);
  }

  /**
   * Wipe what this device holds of its answers to a study. Where a report may have left, ask for its deletion
   * from now on until that is acknowledged: how many these are.
   */
  const withdraw = (studyId) =>
    write((rows, stores) => {
      const isOfStudy = ({ study }) => study === studyId;
      for (const kept of rows.permanent.filter(isOfStudy)) stores.permanent.put({ ...kept, answer: new Uint8Array() });
      const gone = { state: "withdrawn", body: "", invitation: "" };
      const changes = { held: null, refused: null, queued: gone, uninvited: gone, sent: gone };
      return change(rows, stores, isOfStudy, changes).length;
    });

  /** Send what is queued, byte for byte as it was written, and ask for what is to be deleted. */
  const flush = ({ attempts = 5 } = {}) =>
    // One tab at a time, so that a deletion is never sent before the report it is about.
    navigator.locks.request(`${name} flush`, async () => {
      for (const { id } of await read((rows) => rows.reports)) await deliver(id, attempts);
    });

  async function deliver(id, attempts) {
    for (let attempt = 1; !(await isSettled(id)) && attempt < attempts; attempt++) await pause(attempt);
  }

  /** Make the request that a report still waits for, if any: whether nothing is left to do now. */
  async function isSettled(id) {
    const isIt = (row) => row.id === id;
    const report = await read((rows) => rows.reports.find(isIt));
    const send = REQUESTS[report?.state];
    if (!send) return true;
    const next = await send(`${collector}/v1/studies/${report.study}/reports/${id}`, report);
    const wiped = next === "sent" && { invitation: "" };
    await move(isIt, { [report.state]: next && { state: next, ...wiped } });
    return next !== report.state || next === "uninvited";
  }

  return { answer, status, epsilonLeft, consent, invite, withdraw, flush };
}

/** Change the chosen reports by {state they are in: what to change}, null to delete, and return those left. */
function change({ reports }, stores, isChosen, changes) {
  return reports.filter(isChosen).filter((report) => {
    const found = changes[report.state];
    if (found) stores.reports.put(Object.assign(report, found));
    if (found === null) stores.reports.delete(report.id);
    return found !== null;
  });
}

function refuseOutsideWindow({ opens, closes }) {
  const day = (shift) => new Date(Date.now() + shift * DAY_MS).toISOString().slice(0, 10);
  // A comparison with an end that the study does not have is false.
  if (day(1) < opens) fail("closed", `the study opens on ${opens}`);
  if (day(-1) > closes) fail("closed", `the study closed on ${closes}`);
}
