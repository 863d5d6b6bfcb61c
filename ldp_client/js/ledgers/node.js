/** A ledger in a file, for Node (22.13 or later), and any number of its processes. */

import { closeSync, fchmodSync, openSync } from "node:fs";
import { isAbsolute } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { fail, orElse } from "../errors.js";
import { sqliteLedger } from "./sqlite.js";

const LOOK_MS = 50;
const BUSY = 5;
/** ENOENT and the like; SQLite's errors have words of their own. */
const unusable = (error) => orElse("ledger", error?.errstr ?? error?.code)(error);

/**
 * The ledger in the file of that absolute path, made when missing: from another folder a relative one would be
 * another ledger, and SQLite has such names for what is on no disk. Rejects with LdpkitError "ledger".
 */
export async function nodeLedger(path) {
  const { DatabaseSync } = await import("node:sqlite").catch(orElse("ledger", "needs node 22.13 or later"));
  if (!(await attempt(() => isAbsolute(path)))) fail("ledger", "the path must be absolute");
  const open = (file) => {
    // Its reports' withdrawal secrets are nobody else's.
    const opened = openSync(file, "a", 0o600);
    fchmodSync(opened, 0o600);
    closeSync(opened);
    return new DatabaseSync(file);
  };
  const database = await attempt(() => open(path));
  const ledger = sqliteLedger({
    execute: (sql) => database.exec(sql),
    first: (sql) => database.prepare(sql).get(),
    run: (sql, value) => database.prepare(sql).run(value),
  });

  /** A file's lock of its own: the system lets go of it however a process ends. */
  async function alone(work) {
    const lock = await attempt(() => open(`${path}-sending`));
    try {
      while (!isTaken(lock)) await after(LOOK_MS);
      return await work();
    } finally {
      lock.close();
    }
  }
  return { ...ledger, alone };
}

const attempt = async (work) => Promise.resolve().then(work).catch(unusable);

function isTaken(lock) {
  try {
    lock.exec("BEGIN EXCLUSIVE");
    return true;
  } catch (error) {
    return error.errcode === BUSY ? false : unusable(error);
  }
}
