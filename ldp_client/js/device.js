/** A device: answers a study once, remembers that it did, and sends the report when the person agrees. */

import { fail } from "./errors.js";
import { openLedger, totalOf } from "./ledger.js";
import { systemRandom } from "./randomness.js";
import { parseDecimal } from "./rational.js";
import { perturbAnswers } from "./report.js";
import { pause, put, remove } from "./upload.js";

// A device's calendar may be a day away from the collector's, which counts days in UTC.
const DAY_MS = 864e5;

/**
 * Open the device of this browser profile and origin.
 *
 * maxEpsilon: the privacy budget over all studies, a decimal in a string. collector: its base URL.
 * Throws LdpkitError "ledger" where IndexedDB cannot be used, "input" for a bad maxEpsilon.
 *
 * A report is "held" until the person consents, then "queued", then "sent" or "refused" (by the
 * collector, for good). A "withdrawn" one has lost its body and waits for its deletion.
 */
export async function openDevice({
  maxEpsilon,
  collector = location.origin,
  name = "ldpkit",
  random = systemRandom,
}) {
  const budget = parseDecimal(maxEpsilon);
  if (!(budget?.[0] > 0n)) fail("input", "must be a decimal above 0", "maxEpsilon");
  const ledger = await openLedger(name);

  /**
   * Perturb every answer once and write spend and report durably; the report is held until `consent`.
   * Throws LdpkitError "answer" before any noise is drawn, "closed", "answered", "budget" or "ledger".
   */
  async function answer(study, answers) {
    refuseOutsideWindow(study);
    const { id, body } = perturbAnswers(study, answers, random);
    const origin = { study: study.id, version: study.version };
    const spends = study.questions.map((asked) => ({
      ...origin,
      question: asked.id,
      epsilon: asked.mechanism.epsilon,
    }));
    const report = { ...origin, id, body, state: "held" };
    await ledger.record(spends, report, budget);
    return report;
  }

  /** Whether this device answered any question of the study, and the report if it still has it. */
  async function status({ id }) {
    const isOfStudy = ({ study }) => study === id;
    const [spent, reports] = [await ledger.spent(), await ledger.reports()];
    return { answered: spent.some(isOfStudy), report: reports.find(isOfStudy) };
  }

  /** What is left of the budget. */
  async function epsilonLeft() {
    const [spent, unit] = totalOf(await ledger.spent());
    return budget[2] - Number(spent) / Number(unit);
  }

  /** The person agrees that this report leaves. */
  const consent = (id) => ledger.move(id, { held: { state: "queued" } });

  /** Wipe the report; where it may have left, ask for its deletion from now on until that is acknowledged. */
  function withdraw(id) {
    const gone = { state: "withdrawn", body: "" };
    return ledger.move(id, { held: null, refused: null, queued: gone, sent: gone });
  }

  /** Send what is queued, byte for byte as it was written, and ask for what is to be deleted. */
  const flush = ({ attempts = 5 } = {}) =>
    // One tab at a time, so that a deletion is never sent before the report it is about.
    navigator.locks.request(`${name} flush`, async () => {
      for (const { id } of await ledger.reports()) await deliver(id, attempts);
    });

  async function deliver(id, attempts) {
    for (let attempt = 1; !(await isSettled(id)) && attempt < attempts; attempt++) await pause(attempt);
  }

  /** Make the request that a report still waits for, if any: whether nothing is left to do. */
  async function isSettled(id) {
    const { state, study, body } = (await ledger.move(id, {})) ?? {};
    const send = { queued: put, withdrawn: remove }[state];
    if (!send) return true;
    const next = await send(`${collector}/v1/studies/${study}/reports/${id}`, body);
    await ledger.move(id, { [state]: next && { state: next } });
    return next !== state;
  }

  return { answer, status, epsilonLeft, consent, withdraw, flush };
}

function refuseOutsideWindow({ opens, closes }) {
  const day = (shift) => new Date(Date.now() + shift * DAY_MS).toISOString().slice(0, 10);
  // A comparison with an end that the study does not have is false.
  if (day(1) < opens || day(-1) > closes) fail("closed", "today is not a day of the study");
}
