/** A ledger in a file, for Node (22.13 or later), and any number of its processes. */

import { randomUUID } from "node:crypto";
import fs from "node:fs";
import { isAbsolute } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { fail, orElse } from "../errors.js";
import { sqliteLedger } from "./sqlite.js";

const LOOK_MS = 50;
const BUSY = 5;
/** SQLite's errors have words of their own; others are ENOENT and the like. */
const attempt = async (work) =>
  Promise.resolve().then(work).catch((error) => orElse("ledger", error?.errstr ?? error?.code)(error));

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
  const ledger = await attempt(() => {
    // From another folder a relative one would be another ledger, and SQLite has such names for what is on no disk.
    if (!isAbsolute(path)) fail("ledger", "the path must be absolute");
    if (!fs.existsSync(path)) make(path, (file) => open(file, "ax"));
    // SQLite would take it for a new database, and the device would answer again.
    const lost = "the file is empty: what was answered is lost. Delete it for a new device";
    if (!fs.statSync(path).size) fail("ledger", lost);
    return ledgerOn(open(path, "r+"));
  });

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
  return { ...ledger, alone };
}

const ledgerOn = (database) =>
  sqliteLedger({
    execute: (sql) => database.exec(sql),
    first: (sql) => database.prepare(sql).get(),
    run: (sql, value) => database.prepare(sql).run(value),
  });

/** Whole from the start, so that an empty file is one that lost what it held; the first of several makers' counts. */
function make(path, open) {
  const fresh = `${path}-${randomUUID()}`;
  const database = open(fresh);
  try {
    ledgerOn(database);
    database.close();
    place(fresh, path);
  } finally {
    fs.unlinkSync(fresh);
  }
}

function place(fresh, path) {
  try {
    fs.linkSync(fresh, path);
  } catch ({ code }) {
    // Not every file system has links; what is there is never replaced.
    if (code !== "EEXIST") fs.copyFileSync(fresh, path, fs.constants.COPYFILE_EXCL);
  }
}

function isTaken(lock) {
  try {
    lock.exec("BEGIN EXCLUSIVE");
    return true;
  } catch (error) {
    if (error.errcode !== BUSY) throw error;
    return false;
  }
}
