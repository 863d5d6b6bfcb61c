/** A ledger in a text: JSON, with the whole numbers and bytes that JSON does not have. */

/** Of a device that was never asked anything. */
export const EMPTY = '{"spent":[],"permanent":[],"reports":[]}';

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

const write = (memory) =>
  JSON.stringify(memory, (_, value) => {
    if (typeof value === "bigint") return { integer: `${value}` };
    return value instanceof Uint8Array ? { bytes: [...value] } : value;
  });

const read = (text) => JSON.parse(text, (_, value) => kept(value ?? {}) ?? value);

const kept = ({ integer, bytes }) =>
  integer !== undefined ? BigInt(integer) : bytes !== undefined ? Uint8Array.from(bytes) : undefined;
