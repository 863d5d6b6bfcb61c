/** A ledger in a file, for Node (22.13 or later), and any number of its processes. */

import fs from "node:fs";
import { isAbsolute } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { fail, orElse } from "../errors.js";
import { sqliteLedger } from "./sqlite.js";

const LOOK_MS = 50;
const BUSY = 5;

/** As node.d.ts says. */
export async function nodeLedger(path) {
  const { DatabaseSync } = await import("node:sqlite").catch(orElse("ledger", "needs node 22.13 or later"));
  /** flags: "a" makes what is missing. */
  const open = (file, flags) => {
    // Its reports' withdrawal secrets are nobody else's.
    const opened = fs.openSync(file, flags, 0o600);
    fs.fchmodSync(opened, 0o600);
    fs.closeSync(opened);
    return new DatabaseSync(file);
  };

  /** A file's lock of its own: the system lets go of it however a process ends. */
  async function alone(work) {
    const lock = await attempt(() => open(`${path}-sending`, "a"));
    try {
      while (!(await attempt(() => isTaken(lock)))) await after(LOOK_MS);
      return await work();
    } finally {
      lock.close();
    }
  }

  /** Whole from the start, so that an empty file is one that lost what it held. */
  function make() {
    if (fs.existsSync(path)) return;
    const fresh = `${path}-new`;
    for (const left of [fresh, `${fresh}-journal`]) fs.rmSync(left, { force: true });
    const database = open(fresh, "a");
    ledgerOn(database);
    database.close();
    fs.renameSync(fresh, path);
  }

  return attempt(async () => {
    // From another folder a relative one would be another ledger, and SQLite has such names for what is on no disk.
    if (!isAbsolute(path)) fail("ledger", "the path must be absolute");
    if (!fs.existsSync(path)) await alone(make);
    // SQLite would take it for a new database, and the device would answer again.
    const lost = "the file is empty: what was answered is lost. Delete it for a new device";
    if (!fs.statSync(path).size) fail("ledger", lost);
    return { ...ledgerOn(open(path, "r+")), alone };
  });
}

/** SQLite's errors have words of their own; others are ENOENT and the like. */
const attempt = async (work) =>
  Promise.resolve().then(work).catch((error) => orElse("ledger", error?.errstr ?? error?.code)(error));

const ledgerOn = (database) =>
  sqliteLedger({
    execute: (sql) => database.exec(sql),
    first: (sql) => database.prepare(sql).get(),
    run: (sql, value) => database.prepare(sql).run(value),
  });

function isTaken(lock) {
  try {
    lock.exec("BEGIN EXCLUSIVE");
    return true;
  } catch (error) {
    if (error.errcode !== BUSY) throw error;
    return false;
  }
}
