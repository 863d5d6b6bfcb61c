/** A ledger in one row of an SQLite file, durable before anything is reported. */

import { fail, orElse } from "../errors.js";
import { checksum } from "./checksum.js";
import { EMPTY, ledgerInText } from "./written.js";

/** With SQLite's own words for it, which hold nothing of what is kept. */
const unusable = (error) => orElse("ledger", error?.errstr)(error);
const LAYOUT = 3;
// With a checksum; what was deleted may still stand in the file.
const UNWIPED = 2;
const MADE = "SELECT 1 FROM sqlite_master WHERE name = 'ldpkit_ledger'";
const KEPT = "SELECT * FROM ldpkit_ledger";

/**
 * {read, write} on a connection of the ledger's own: execute(sql), first(sql) → row or nothing, run(sql, value), all
 * of them synchronous. Throws LdpkitError "ledger".
 */
export function sqliteLedger({ execute, first, run }) {
  function inTransaction(work) {
    // Not to be upgraded later: what was read is still so when it is written.
    execute("BEGIN IMMEDIATE");
    try {
      const result = work();
      execute("COMMIT");
      return result;
    } catch (error) {
      undo();
      throw error;
    }
  }

  function undo() {
    try {
      execute("ROLLBACK");
    } catch {
      // SQLite did already, as it does on a full disk.
    }
  }

  /** A table without its row was damaged, and is not filled anew: that would be to answer again. */
  function make() {
    if (first(MADE)) return first(KEPT).layout === 1 ? renew() : load();
    execute("CREATE TABLE ldpkit_ledger (layout INTEGER NOT NULL, memory TEXT NOT NULL, sum INTEGER)");
    run(`INSERT INTO ldpkit_ledger VALUES (${LAYOUT}, ?, ${checksum(EMPTY)})`, EMPTY);
  }

  /** Of an earlier release, which kept no checksum. One that has it was damaged: SQLite adds no column twice. */
  function renew() {
    const { memory } = first(KEPT);
    JSON.parse(memory).reports.forEach(Object);
    execute("ALTER TABLE ldpkit_ledger ADD COLUMN sum INTEGER");
    run(`UPDATE ldpkit_ledger SET layout = ${UNWIPED}, sum = ${checksum(memory)}, memory = ?`, memory);
  }

  /** The file anew, and after a kill half-way once more. SQLite does that in no transaction. */
  function wipe() {
    if (first(KEPT).layout === LAYOUT) return;
    // No copy on disk: Android has no place for it.
    execute("PRAGMA temp_store = MEMORY; VACUUM");
    execute(`UPDATE ldpkit_ledger SET layout = ${LAYOUT}`);
  }

  function load() {
    const { layout, memory, sum } = first(KEPT);
    if (![LAYOUT, UNWIPED].includes(layout) || checksum(memory) !== sum) fail("ledger", "was damaged, and answers nothing");
    return memory;
  }
  const store = (text) => run(`UPDATE ldpkit_ledger SET sum = ${checksum(text)}, memory = ?`, text);

  try {
    // On disk when a transaction ends, on Apple's devices too, as is the journal's removal, which is its end; what is
    // deleted is overwritten; others who write are waited for.
    execute("PRAGMA busy_timeout = 5000; PRAGMA synchronous = EXTRA; PRAGMA fullfsync = 1; PRAGMA secure_delete = ON");
    inTransaction(make);
    wipe();
  } catch (error) {
    unusable(error);
  }
  return ledgerInText({ inTransaction, load, store, unusable });
}
