/**
 * The page's service worker: sends the reports that were agreed to, and deletions, when the browser is online again, and
 * now and then where the browser does that.
 */

import { openDevice } from "../../ldp_client/js/device.js";
import { openLedger } from "../../ldp_client/js/ledger.js";

const HOUR_MS = 36e5;
// A browser that wakes a worker looks for a newer one, at the collector, a day after it did last.
const FRESH_MS = 21 * HOUR_MS;

for (const kind of ["sync", "periodicsync"]) addEventListener(kind, (event) => event.waitUntil(sendWhatWaits()));

// Then the browser has just fetched this file.
addEventListener("install", (event) => event.waitUntil(opened().then((its) => noteLook(its)).catch(console.error)));

/**
 * The worker's turns among pages that send, which it asks for again and again, and does not wait for: while a worker waits
 * behind a page that was left, and is kept for the way back, Chromium gives the turn to nobody, to no page either.
 */
async function alone(work, seconds = 120) {
  const ifAvailable = true;
  const done = await navigator.locks.request("ldpkit flush", { ifAvailable }, async (turn) => turn && [await work()]);
  if (done) return done[0];
  // The browser wakes it again.
  if (!seconds) throw new Error("a page sends");
  await new Promise((resolve) => setTimeout(resolve, 1000));
  return alone(work, seconds - 1);
}

// Answers nothing, so its budget is never spent.
async function opened() {
  const ledger = await openLedger("ldpkit");
  return { device: await openDevice({ maxEpsilon: "1", ledger: { ...ledger, alone } }), ledger };
}

const waits = ({ state }) => /^[qw]/.test(state);

/** The collector sees who looks for a newer worker; when that was is kept, as a visit of the page makes no browser look. */
async function noteLook({ device, ledger }, look = () => {}) {
  await device.visited();
  await look();
  await ledger.write((memory) => (memory.looked = Date.now()));
}

/** Look for a newer worker before the browser does, which would do so beside what leaves through a relay. */
async function lookFirst(its) {
  const { reports, looked } = await its.ledger.read((memory) => memory);
  // What lies ahead was noted before the clock was moved back.
  const age = Date.now() - looked;
  const isRelayed = reports.some((one) => waits(one) && one.channel?.oblivious);
  if (isRelayed && !(age >= 0 && age < FRESH_MS)) await noteLook(its, () => registration.update());
}

async function sendWhatWaits() {
  const its = await opened();
  await lookFirst(its);
  await its.device.flush({ attempts: 2 });
  const [left, until = 0] = await its.ledger.read((memory) => [memory.reports.filter(waits), memory.apart]);
  const leavesAt = ({ due = 0, channel }) => (channel?.oblivious ? Math.max(due, until) : due);
  // An error has the browser try again soon.
  if (left.some((report) => !(leavesAt(report) > Date.now()))) throw new Error("reports wait");
  if (!left.length) await registration.unregister();
}
