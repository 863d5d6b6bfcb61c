/** A device: answers a study once, remembers that it did, and sends the report when the person agrees. */

import { fail } from "./errors.js";
import { openLedger } from "./ledger.js";
import { systemRandom, uniformBelow } from "./randomness.js";
import { add, nearest, parseDecimal } from "./rational.js";
import { drawIdentity, drawPayloads, reportOf } from "./report.js";
import { ZERO, costOf, leftOf, recall, refuseSpending } from "./spending.js";
import { findPublisher, pause, put, remove } from "./upload.js";

const REQUESTS = { queued: put, uninvited: put, withdrawn: remove };

/**
 * Open the device of this browser profile and origin.
 *
 * maxEpsilon, maxDelta: the privacy budget over all studies, decimals in strings. collector: its base URL, in any
 * spelling.
 * Throws LdpkitError "ledger" where IndexedDB cannot be used, "input" for a bad budget.
 *
 * A report is "held" until the person consents, then "queued", then "sent", "refused" (by the collector,
 * for good) or "uninvited" until it is given an invitation that the collector takes. A "withdrawn" one
 * has lost its body and waits for its deletion.
 */
export async function openDevice({
  maxEpsilon,
  maxDelta = "0.0001",
  collector: given = location.origin,
  name = "ldpkit",
  random = systemRandom,
}) {
  const budget = { epsilon: limit(maxEpsilon, "maxEpsilon"), delta: limit(maxDelta, "maxDelta") };
  const collector = baseOf(given);
  const [read, write] = await openLedger(name);

  /**
   * Perturb every answer once and write spends, permanent answers and report durably; the report is held
   * until `consent`. Throws LdpkitError "input", "answer", "closed", "answered", "budget" or "ledger"; then nothing
   * is written.
   */
  async function answer(study, answers, invitation = "") {
    refuseOutsideWindow(study);
    // Before the transaction, which would not wait for a hash.
    const identity = await drawIdentity(random);
    return write((memory) => {
      const recalled = recall(study, memory);
      refuseSpending(study, recalled, memory.spent, budget);
      const { answered, ...made } = reportOf(
        study,
        drawPayloads(study, answers, random, recalled.map(({ mechanism }) => mechanism), drawnPlace(study, memory)),
        identity,
      );
      const origin = { study: study.id, version: study.version, digest: study.digest };
      // A memoized mechanism alone is `of` another.
      const once = recalled.filter(({ asked }) => !asked.mechanism.of);
      recalled.forEach((one, index) => {
        let { asked, spend } = one;
        if (!spend) memory.spent.push((spend = { question: asked.id }));
        // All that it was ever asked in, and a record's fields; an older ledger kept the last words alone.
        const names = study.told.map(({ questions }) => namesOf(questions[index]));
        const text = [...new Set([spend.text, ...names].flat())];
        Object.assign(spend, origin, { text });
        if (!one.isFresh || !answered.includes(asked.id)) return;
        // Each version may draw another memoized question, and a study states their sum.
        const paid = study.ask_one && once.includes(one) ? once : [one];
        // Once more where a memoized question came to ask another thing.
        for (const kind in budget) spend[kind] = add(spend[kind] ?? ZERO, costOf(study, paid, kind));
      });
      const report = { ...origin, closes: study.closes, collector, ...made, state: "held", invitation, publisher: "" };
      // Nobody agreed to what an earlier round shows: it never leaves.
      memory.reports = memory.reports.filter(({ study: its, state }) => its !== study.id || state !== "held");
      memory.reports.push(report);
      return report;
    });
  }

  /**
   * Draw the one question that a study asks this device, whatever it will answer, and keep that durably: its place. Only
   * that one is then to be answered. -1 where a study asks all.
   */
  const draw = (study) =>
    write((memory) => {
      if (study.ask_one && drawnPlace(study, memory) < 0) {
        const { id: question } = study.questions[uniformBelow(study.questions.length, random)];
        // An older ledger has no draws.
        (memory.drawn ??= []).push({ digest: study.digest, question });
      }
      return drawnPlace(study, memory);
    });

  /** Whether this device would refuse to answer the study (again), and its latest report that is left. */
  const status = (study) =>
    read((memory) => ({
      answered: recall(study, memory).some(({ problem }) => problem),
      report: memory.reports.findLast((report) => report.study === study.id),
    }));

  /** What is left of the budget. */
  const epsilonLeft = () => read(({ spent }) => nearest(leftOf(budget, spent, "epsilon")));

  /** Change a report by {state it is in: what to change}; returns it. One that then has no state is dropped. */
  const move = (id, changes) =>
    write((memory) => {
      const report = memory.reports.find((one) => one.id === id);
      if (report) Object.assign(report, changes[report.state]);
      memory.reports = memory.reports.filter(({ state }) => state);
      return report;
    });

  /** The person agrees that the report which `status` shows for the study leaves. */
  async function consent(study) {
    const { report } = await status(study);
    return move(report?.id, { held: { state: "queued" } });
  }

  /**
   * Give the latest report that waits to be sent to a study another invitation: it had none, or one that was not
   * taken. Throws as `withdraw`.
   */
  const invite = (studyId, invitation) =>
    write((memory) => {
      refuseUnknown(memory, studyId);
      // Held, queued or uninvited.
      const waits = memory.reports.findLast(({ study, state }) => study === studyId && /^[hqu]/.test(state));
      if (waits) waits.invitation = invitation;
    });

  /**
   * Wipe what this device holds of its answers to a study. Where a report may have left, ask for its deletion
   * from now on until that is acknowledged: how many these are. Throws "input" for a study that it never answered.
   */
  const withdraw = (studyId) =>
    write((memory) => {
      refuseUnknown(memory, studyId);
      for (const kept of memory.permanent) if (kept.study === studyId) kept.answer = new Uint8Array();
      // A report that no collector was found for never left. One of an older ledger may have.
      const isLeft = ({ study, state, publisher }) => study !== studyId || (state !== "held" && publisher !== "");
      memory.reports = memory.reports.filter(isLeft);
      // A refused one, too, may be there: an earlier attempt reached the collector, and its answer was lost.
      const asked = memory.reports.filter(({ study }) => study === studyId);
      for (const report of asked) Object.assign(report, { state: "withdrawn", body: "", invitation: "" });
      return asked.length;
    });

  /**
   * Ask for what is to be deleted, then send this collector's queued reports, byte for byte as they were written.
   */
  const flush = ({ attempts = 5 } = {}) =>
    // One tab at a time, so that a deletion is never sent before the report it is about.
    navigator.locks.request(`${name} flush`, async () => {
      const longestMs = 3e5;
      const until = Date.now() + longestMs;
      // What is to be deleted has no body.
      const left = await read(({ reports }) => reports.sort((a, b) => !b.body - !a.body));
      // Each once before any a second time: what is never settled holds nothing else up.
      for (let attempt = 0; left[0] && attempt < attempts; attempt++) {
        if (attempt) await pause(attempt);
        for (const report of left.splice(0)) {
          if (Date.now() < until && !(await isSettled(report.id))) left.push(report);
        }
      }
    });

  /** Make the request that a report still waits for, if any: whether nothing is left to do now. */
  async function isSettled(id) {
    const report = await move(id, {});
    const send = REQUESTS[report?.state];
    // A report of a ledger that did not keep collectors has none.
    if (!send || baseOf(report.collector ?? collector) !== collector) return true;
    const step = report.publisher ? send : findPublisher;
    const { changes, again } = await step(`${collector}/v1/studies/${report.study}`, report);
    await move(id, { [report.state]: changes });
    // The person may have withdrawn meanwhile.
    return changes.publisher ? isSettled(id) : !again;
  }

  return { answer, draw, status, epsilonLeft, consent, invite, withdraw, flush };
}

/** The place of the question that was drawn for this very document; -1 for none. */
function drawnPlace(study, { drawn = [] }) {
  const row = drawn.find(({ digest }) => digest === study.digest);
  return study.questions.findIndex(({ id }) => id === row?.question);
}

/** What a question may be recognised by, when it comes back in clear. */
const namesOf = ({ text, features = [], response }) => [text, ...[...features, response].map((part) => part?.id)];

/** One spelling of a collector's URL. */
const baseOf = (url) => new Request(url).url.replace(/\/$/, "");

function limit(text, field) {
  const number = parseDecimal(text);
  return number?.[0] > 0n ? number : fail("input", "must be above 0", field);
}

/** A mistyped id is nobody's: a 0 would say that all is deleted. */
function refuseUnknown({ spent }, studyId) {
  if (!spent.some(({ study }) => study === studyId)) fail("input", "was never answered", "study");
}

/** A device's calendar may be a day away from the collector's, which counts days in UTC. */
function refuseOutsideWindow({ opens, closes }) {
  const dayMs = 864e5;
  const day = (shift) => new Date(Date.now() + shift * dayMs).toISOString().slice(0, 10);
  // A comparison with an end that the study does not have is false.
  if (day(1) < opens) fail("closed", `opens on ${opens}`);
  if (day(-1) > closes) fail("closed", `closed on ${closes}`);
}
