/** Sending what waits: reports that were agreed to, and deletions that were asked for. */

import { originOf } from "./address.js";
import { unloaded } from "./errors.js";
import { randomUint32, systemRandom } from "./randomness.js";
import { put, remove } from "./upload.js";

const REQUESTS = { queued: put, ticketless: put, withdrawn: remove };
const LONGEST_MS = 3e5;

/** Ask for deletions and send queued reports, byte for byte as written, from a device and its ledger. */
export function send(device, { attempts = 5, now } = {}) {
  const { name, collector, origin, read, write, move, transport } = device;
  const { alone = (work) => navigator.locks.request(`${name} flush`, work) } = device;

  // One tab at a time, so that a deletion is never sent before the report it is about.
  return alone(async () => {
    const until = Date.now() + LONGEST_MS;
    const reports = await read((memory) => memory.reports);
    const isBatched = reports.some(({ channel }) => channel);
    const leaving = isBatched && (await import("./leaving.js").catch(unloaded));
    const chosen = leaving && (await write(leaving.choose(origin, now, transport.relay)));
    // Of a panel of years most were sent long ago, and each look writes the ledger.
    const isOwn = (report) => REQUESTS[report.state] && report.origin === origin;
    const waiting = shuffled(reports.filter((report) => isOwn(report) && (!chosen || chosen.has(report.id))));
    // Each once before any a second time: what is never settled holds nothing else up. A server that is overloaded or
    // cannot be reached gets no further request before the pause.
    for (let attempt = 0; waiting[0] && attempt < attempts; attempt++) {
      if (attempt) await pause(attempt);
      for (let again = false; waiting[0] && !again; ) {
        const report = waiting.shift();
        again = Date.now() < until && !(await isSettled(report.id, attempts - attempt));
        if (again) waiting.push(report);
      }
    }
    if (leaving) await write(leaving.postpone(waiting.map(({ id }) => id)));

    /** Make the request that a report still waits for, if any: whether nothing is left to do now. */
    async function isSettled(id, left) {
      const report = await move(id, {});
      const request = REQUESTS[report?.state];
      if (!request) return true;
      const awaitsToken = report.channel?.tickets && !report.token;
      // Noted before the first upload: a report that is withdrawn before that is forgotten without a request.
      if (report.body && !awaitsToken && !report.left) {
        await move(id, { [report.state]: { left: true } });
        return isSettled(id, left);
      }
      const its = report.channel ? leaving.inBatches(request, move, left, now) : request;
      // A report for a former origin goes to where the collector is now.
      const base = originOf(report.collector) === origin ? report.collector : collector;
      const { changes, again } = await its(transport, `${base}/v1/studies/${report.study}`, report);
      await move(id, { [report.state]: changes });
      return !again;
    }
  });
}

/** Return reports in random order: what fails always blocks no other for good. */
function shuffled(reports) {
  const places = new Map(reports.map((report) => [report, randomUint32(systemRandom)]));
  return reports.sort((one, other) => places.get(one) - places.get(other));
}

/** Full jitter: a pause before attempt 1, 2, … drawn from a range that doubles. */
function pause(attempt) {
  const longest = Math.min(60_000, 500 * 2 ** attempt);
  return new Promise((resolve) => setTimeout(resolve, longest * Math.random()));
}
