/** A ledger in one row of an SQLite file, durable before anything is reported. */

import { fail, orElse } from "../errors.js";
import { checksum } from "./checksum.js";
import { EMPTY, ledgerInText } from "./written.js";

/** With SQLite's own words for it, which hold nothing of what is kept. */
const unusable = (error) => orElse("ledger", error?.errstr)(error);
const LAYOUT = 1;
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
    if (first(MADE)) return load();
    execute("CREATE TABLE ldpkit_ledger (layout INTEGER NOT NULL, memory TEXT NOT NULL, sum INTEGER)");
    run(`INSERT INTO ldpkit_ledger VALUES (${LAYOUT}, ?, ${checksum(EMPTY)})`, EMPTY);
  }

  function load() {
    const { layout, memory, sum } = first(KEPT);
    if (layout !== LAYOUT || checksum(memory) !== sum) fail("ledger", "was damaged, and answers nothing");
    return memory;
  }
  const store = (text) => run(`UPDATE ldpkit_ledger SET sum = ${checksum(text)}, memory = ?`, text);

  try {
    // On disk when a transaction ends, on Apple's devices too, as is the journal's removal, which is its end; what is
    // deleted is overwritten; others who write are waited for.
    execute("PRAGMA busy_timeout = 5000; PRAGMA synchronous = EXTRA; PRAGMA fullfsync = 1; PRAGMA secure_delete = ON");
    inTransaction(make);
  } catch (error) {
    unusable(error);
  }
  return ledgerInText({ inTransaction, load, store, unusable });
}
