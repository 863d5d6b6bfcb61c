/**
 * The page's service worker: sends the reports that were agreed to, and deletions, when the browser is online again, and
 * now and then where the browser does that.
 */

import { openDevice } from "../../ldp_client/js/device.js";
import { openLedger } from "../../ldp_client/js/ledger.js";

const HOUR_MS = 36e5;
// A browser looks for a newer worker when it wakes one a day after it did last; a visit is noted for two hours at most.
const FRESH_MS = 21 * HOUR_MS;

for (const kind of ["sync", "periodicsync"]) addEventListener(kind, (event) => event.waitUntil(sendWhatWaits()));

async function sendWhatWaits() {
  // Answers nothing, so its budget is never spent.
  const device = await openDevice({ maxEpsilon: "1" });
  const { read } = await openLedger("ldpkit");
  const apart = await read((memory) => memory.apart);
  if (apart && Date.now() - apart > FRESH_MS) {
    // Its collector sees that: not beside what leaves through a relay.
    await registration.update();
    await device.visited();
  }
  await device.flush({ attempts: 2 });
  const [left, until = 0] = await read((memory) => [memory.reports.filter(({ state }) => /^[qw]/.test(state)), memory.apart]);
  const leavesAt = ({ due = 0, channel }) => (channel?.oblivious ? Math.max(due, until) : due);
  // An error has the browser try again soon.
  if (left.some((report) => !(leavesAt(report) > Date.now()))) throw new Error("reports wait");
  if (!left.length) await registration.unregister();
}
