/** A ledger in a text: JSON, with the whole numbers and bytes that JSON does not have. */

/** Of a device that was never asked anything. */
export const EMPTY = '{"spent":[],"permanent":[],"reports":[],"drawn":[]}';

/**
 * {read, write} of a ledger whose text `load` gives and `store` replaces; inTransaction(work) returns work(), and undoes
 * what was stored where that throws; unusable: throws the LdpkitError that an error is told as.
 */
export function ledgerInText({ inTransaction, load, store, unusable }) {
  async function run(work, isKept) {
    return inTransaction(() => {
      const memory = read(load());
      const result = work(memory);
      if (isKept) store(write(memory));
      return result;
    });
  }
  const withMemory = (isKept) => (work) => run(work, isKept).catch(unusable);
  return { read: withMemory(false), write: withMemory(true) };
}

/** Beside a key of a document that would be read as a whole number: no name in a document is empty. */
const PLAIN = "";

const write = (memory) =>
  JSON.stringify(memory, function (key) {
    // As it is, whatever `toJSON` an app gave to all whole numbers.
    const value = this[key];
    if (typeof value === "bigint") return { integer: `${value}` };
    if (value instanceof Uint8Array) return { bytes: [...value] };
    return isInteger(value) || isBytes(value) ? { ...value, [PLAIN]: 0 } : value;
  });

const read = (text) => JSON.parse(text, (_, value) => kept(value));

function kept(value) {
  if (isInteger(value)) return BigInt(value.integer);
  if (isBytes(value)) return Uint8Array.from(value.bytes);
  if (value?.[PLAIN] === 0) delete value[PLAIN];
  return value;
}

const isInteger = (value) => isAlone(value?.integer, value) && /^-?\d+$/.test(value.integer);
const isBytes = (value) => isAlone(value?.bytes, value) && Array.isArray(value.bytes);
/** Whether that is there, and nothing is beside it: a study may call a public field by the same name. */
const isAlone = (held, value) => held !== undefined && Object.keys(value).length === 1;
