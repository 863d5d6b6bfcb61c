/** A ledger in a text: JSON, with the whole numbers and bytes that JSON does not have. */

/** Of a device that was never asked anything. */
export const EMPTY = '{"spent":[],"permanent":[],"reports":[],"drawn":[]}';

/** Return {read, write} of a text. inTransaction undoes `store` if its work throws. */
export function ledgerInText({ inTransaction, load, store, unusable }) {
  const run = (isKept) => async (work) => {
    try {
      return inTransaction(() => {
        const memory = JSON.parse(load(), decode);
        const result = work(memory);
        if (isKept) store(JSON.stringify(memory, encode));
        return result;
      });
    } catch (error) {
      return unusable(error);
    }
  };
  return { read: run(false), write: run(true) };
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

// Marks what JSON does not have. Neither a study nor a person can write a text with U+0000.
const INTEGER = "\0integer ";
const BYTES = "\0bytes ";

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
