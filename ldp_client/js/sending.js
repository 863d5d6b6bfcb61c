/** Sending what waits: reports that were agreed to, and deletions that were asked for. */

import { findPublisher, pause, put, remove } from "./upload.js";

const REQUESTS = { queued: put, uninvited: put, withdrawn: remove };
const LONGEST_MS = 3e5;

/**
 * Ask a device's collector for what is to be deleted, then send it the queued reports, byte for byte as they were
 * written. isOurs: whether a report was made for it; read, move: of the device's ledger.
 */
export const send = ({ name, collector, isOurs, read, move }, { attempts = 5 } = {}) =>
  // One tab at a time, so that a deletion is never sent before the report it is about.
  navigator.locks.request(`${name} flush`, async () => {
    const until = Date.now() + LONGEST_MS;
    // What is to be deleted has no body.
    const left = await read(({ reports }) => reports.sort((a, b) => !b.body - !a.body));
    // Each once before any a second time: what is never settled holds nothing else up.
    for (let attempt = 0; left[0] && attempt < attempts; attempt++) {
      if (attempt) await pause(attempt);
      for (const report of left.splice(0)) {
        if (Date.now() < until && !(await isSettled(report.id))) left.push(report);
      }
    }

    /** Make the request that a report still waits for, if any: whether nothing is left to do now. */
    async function isSettled(id) {
      const report = await move(id, {});
      const request = REQUESTS[report?.state];
      if (!request || !isOurs(report)) return true;
      const step = report.publisher ? request : findPublisher;
      const { changes, again } = await step(`${collector}/v1/studies/${report.study}`, report);
      await move(id, { [report.state]: changes });
      // The person may have withdrawn meanwhile.
      return changes.publisher ? isSettled(id) : !again;
    }
  });
