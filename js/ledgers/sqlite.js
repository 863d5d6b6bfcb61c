/** A ledger in one row of an SQLite file, durable before anything is reported. */

import { utf8 } from "../digest.js";
import { fail, orElse } from "../errors.js";
import { EMPTY, ledgerInText } from "./text.js";

const LAYOUT = 1;
const MADE = "SELECT 1 FROM sqlite_master WHERE name = 'ldpkit_ledger'";
// On disk when a transaction ends, on Apple's devices too, as is the journal's removal, which is its end; what is
// deleted is overwritten; others who write are waited for.
const DURABLE =
  "PRAGMA busy_timeout = 5000; PRAGMA synchronous = EXTRA; PRAGMA fullfsync = 1; PRAGMA secure_delete = ON";

/** With SQLite's own words for it, which hold nothing of what is kept. */
const unusable = (error) => orElse("ledger", error?.errstr)(error);

/** Return {read, write} on a connection of the ledger's own, whose functions are synchronous. */
export function sqliteLedger({ execute, first, run }) {
  function inTransaction(work) {
    // Not to be upgraded later: what was read is still so when it is written.
    execute("BEGIN IMMEDIATE");
    try {
      const result = work();
      execute("COMMIT");
      return result;
    } catch (error) {
      try {
        execute("ROLLBACK");
      } catch {
        // SQLite did already, as it does on a full disk.
      }
      throw error;
    }
  }

  /** A table without its row was damaged, and is not filled anew: that would be to answer again. */
  function make() {
    if (first(MADE)) return load();
    execute("CREATE TABLE ldpkit_ledger (layout INTEGER NOT NULL, memory TEXT NOT NULL, sum INTEGER)");
    run(`INSERT INTO ldpkit_ledger VALUES (${LAYOUT}, ?, ${checksum(EMPTY)})`, EMPTY);
  }

  function load() {
    const { layout, memory, sum } = first("SELECT * FROM ldpkit_ledger");
    if (layout !== LAYOUT || checksum(memory) !== sum) fail("ledger", "was damaged, and answers nothing");
    return memory;
  }
  const store = (text) => run(`UPDATE ldpkit_ledger SET sum = ${checksum(text)}, memory = ?`, text);

  try {
    execute(DURABLE);
    inTransaction(make);
  } catch (error) {
    unusable(error);
  }
  return ledgerInText({ inTransaction, load, store, unusable });
}

/** CRC-32 of a text's UTF-8 bytes, as zip files have it: at once, which the digests of browsers are not. */
function checksum(text) {
  let rest = -1;
  for (const byte of utf8(text)) {
    rest ^= byte;
    for (let bit = 0; bit < 8; bit++) rest = (rest >>> 1) ^ (0xedb88320 & -(rest & 1));
  }
  return ~rest >>> 0;
}
