/**
 * The page's service worker: sends the reports that were agreed to, and deletions, when the browser is online again, and
 * now and then where the browser does that.
 */

import { openDevice } from "../../ldp_client/js/device.js";
import { openLedger } from "../../ldp_client/js/ledger.js";

for (const kind of ["sync", "periodicsync"]) addEventListener(kind, (event) => event.waitUntil(sendWhatWaits()));

async function sendWhatWaits() {
  // Answers nothing, so its budget is never spent.
  const device = await openDevice({ maxEpsilon: "1" });
  await device.flush({ attempts: 2 });
  const { read } = await openLedger("ldpkit");
  const left = await read(({ reports }) => reports.filter(({ state }) => /^[qw]/.test(state)));
  // An error has the browser try again soon.
  if (left.some(({ due }) => !(due > Date.now()))) throw new Error("reports wait");
  if (!left.length) await registration.unregister();
}
