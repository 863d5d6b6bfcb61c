/** The page's service worker: sends the reports that were agreed to, and deletions, when the browser is online again. */

import { openDevice } from "../../ldp_client/js/device.js";
import { openLedger } from "../../ldp_client/js/ledger.js";

addEventListener("sync", (event) => event.waitUntil(sendWhatWaits()));

async function sendWhatWaits() {
  // Answers nothing, so its budget is never spent.
  const device = await openDevice({ maxEpsilon: "1" });
  await device.flush({ attempts: 2 });
  const { read } = await openLedger("ldpkit");
  // An error has the browser try again later.
  if (await read(({ reports }) => reports.some(({ state }) => /^[qw]/.test(state)))) throw new Error("reports wait");
  await registration.unregister();
}
