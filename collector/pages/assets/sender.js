/** The page's service worker: sends the reports that were agreed to, and deletions, when the browser is online again. */

import { openDevice } from "../../../js/device.js";
import { openLedger } from "../../../js/ledger.js";

addEventListener("sync", (event) => event.waitUntil(sendWhatWaits()));

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

async function sendWhatWaits() {
  const ledger = { ...(await openLedger("ldpkit")), alone };
  // Answers nothing, so its budget is never spent.
  const device = await openDevice({ maxEpsilon: "1", ledger });
  await device.flush({ attempts: 2 });
  const left = await ledger.read(({ reports }) => reports.filter(({ state }) => /^[qw]/.test(state)));
  // An error has the browser try again soon.
  if (left.some(({ due }) => !(due > Date.now()))) throw new Error("reports wait");
  if (!left.length) await registration.unregister();
}
