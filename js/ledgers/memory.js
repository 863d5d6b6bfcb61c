/** A ledger in memory, for tests: when the process ends, the device has forgotten what it answered. */

import { orElse } from "../errors.js";

/** A new ledger; devices that share it answer once between them. */
export function memoryLedger() {
  let memory = { spent: [], permanent: [], reports: [], drawn: [] };
  const run = (isKept) => async (work) => {
    try {
      const copy = structuredClone(memory);
      const result = work(copy);
      // What is returned may be a part of the copy, and be changed.
      if (isKept) memory = structuredClone(copy);
      return result;
    } catch (error) {
      return orElse("ledger")(error);
    }
  };
  return { read: run(false), write: run(true), alone: inTurn() };
}

/** A function that runs work after what it was given before, however that ended, and returns what it returns. */
export function inTurn() {
  let last = Promise.resolve();
  return (work) => {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  };
}
