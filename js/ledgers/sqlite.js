/** A ledger in one row of an SQLite file, durable before anything is reported: JSON, with whole numbers and bytes. */

import { utf8 } from "../encoding.js";
import { fail, orElse } from "../errors.js";

const LAYOUT = 1;
const MADE = "SELECT 1 FROM sqlite_master WHERE name = 'ldpkit_ledger'";
// On disk when a transaction ends, on Apple's devices too, as is the journal's removal, which is its end; what is
// deleted is overwritten; others who write are waited for. What was read is still so when it is written.
const DURABLE =
  "PRAGMA busy_timeout = 5000; PRAGMA synchronous = EXTRA; PRAGMA fullfsync = 1; PRAGMA secure_delete = ON";
/** Of a device that was never asked anything. */
const EMPTY = '{"spent":[],"permanent":[],"reports":[],"drawn":[]}';
// Marks what JSON does not have. Neither a study nor a person can write a text with U+0000.
const INTEGER = "\0integer ";
const BYTES = "\0bytes ";

/** Return {read, write} on a connection of the ledger's own, whose functions are synchronous. */
export function sqliteLedger({ execute, first, run }) {
  // With SQLite's own words for what went wrong, which hold nothing of what is kept.
  const unusable = (error) => orElse("ledger", error?.errstr)(error);

  function inTransaction(work) {
    try {
      execute(`${DURABLE}; BEGIN IMMEDIATE`);
    } catch (error) {
      return unusable(error);
    }
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
      return unusable(error);
    }
  }

  function load() {
    const { layout, memory, sum } = first("SELECT * FROM ldpkit_ledger");
    if (layout !== LAYOUT || checksum(memory) !== sum) fail("ledger", "was damaged, and answers nothing");
    return JSON.parse(memory, decode);
  }

  // A table without its row was damaged, and is not filled anew: that would be to answer again.
  inTransaction(() => {
    if (first(MADE)) return load();
    execute("CREATE TABLE ldpkit_ledger (layout INTEGER NOT NULL, memory TEXT NOT NULL, sum INTEGER)");
    return run(`INSERT INTO ldpkit_ledger VALUES (${LAYOUT}, ?, ${checksum(EMPTY)})`, EMPTY);
  });

  const read = async (work) => inTransaction(() => work(load()));
  const write = (work) =>
    read((memory) => {
      const result = work(memory);
      const text = JSON.stringify(memory, encode);
      run(`UPDATE ldpkit_ledger SET sum = ${checksum(text)}, memory = ?`, text);
      return result;
    });
  return { read, write };
}

function encode(key) {
  // As it is, whatever `toJSON` an app gave to all whole numbers.
  const value = this[key];
  if (typeof value === "bigint") return INTEGER + value;
  return value instanceof Uint8Array ? BYTES + value : value;
}

function decode(_, value) {
  if (typeof value !== "string") return value;
  if (value.startsWith(INTEGER)) return BigInt(value.slice(INTEGER.length));
  return value.startsWith(BYTES) ? bytesOf(value.slice(BYTES.length)) : value;
}

const bytesOf = (text) => Uint8Array.from(text && text.split(","));

/** CRC-32 of a text's UTF-8 bytes, as zip files have it: at once, which the digests of browsers are not. */
function checksum(text) {
  let rest = -1;
  for (const byte of utf8(text)) {
    rest ^= byte;
    for (let bit = 0; bit < 8; bit++) rest = (rest >>> 1) ^ (0xedb88320 & -(rest & 1));
  }
  return ~rest >>> 0;
}
