/** Sending what waits: reports that were agreed to, and deletions that were asked for. */

import { originOf } from "./address.js";
import { unloaded } from "./errors.js";
import { findPublisher, pause, put, remove } from "./upload.js";

const REQUESTS = { queued: put, uninvited: put, withdrawn: remove };

/**
 * Ask a device's collector for what is to be deleted, then send it the queued reports, byte for byte as they were
 * written, all by its transport. read, write, move: of the device's ledger; alone: its own turns, else the browser's
 * for its name. collector, origin: its base URL, and that URL's origin.
 */
export const send = (
  {
    name,
    alone = (work) => navigator.locks.request(`${name} flush`, work),
    collector,
    origin,
    read,
    write,
    move,
    transport,
  },
  { attempts = 5, now } = {},
) =>
  // One tab at a time, so that a deletion is never sent before the report it is about.
  alone(async () => {
    const longestMs = 3e5;
    const until = Date.now() + longestMs;
    // What is to be deleted has no body.
    const reports = await read(({ reports }) => reports.sort((a, b) => !b.body - !a.body));
    const isBatched = reports.some(({ channel }) => channel);
    const leaving = isBatched && (await import("./leaving.js").catch(unloaded));
    const chosen = leaving && (await write(leaving.choose(origin, now, transport.relay)));
    // Of a panel of years most were sent long ago, and each look writes the ledger.
    const left = reports.filter((one) => REQUESTS[one.state] && one.origin === origin && (!chosen || chosen.has(one.id)));
    // Each once before any a second time: what is never settled holds nothing else up.
    let attempt = 0;
    for (; left[0] && attempt < attempts; attempt++) {
      if (attempt) await pause(attempt);
      for (const report of left.splice(0)) {
        if (Date.now() < until && !(await isSettled(report.id))) left.push(report);
      }
    }

    /** Make the request that a report still waits for, if any: whether nothing is left to do now. */
    async function isSettled(id) {
      const report = await move(id, {});
      const request = REQUESTS[report?.state];
      if (!request) return true;
      const step = report.publisher ? request : findPublisher;
      const its = report.channel ? leaving.inBatches(step, move, attempts - attempt, now) : step;
      // A report for a former origin goes to where the collector is now.
      const base = originOf(report.collector) === origin ? report.collector : collector;
      const { changes, again } = await its(transport, `${base}/v1/studies/${report.study}`, report);
      await move(id, { [report.state]: changes });
      // The person may have withdrawn meanwhile.
      return changes.publisher ? isSettled(id) : !again;
    }
  });
