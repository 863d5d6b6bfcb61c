/** What a ledger keeps as text: JSON, with the whole numbers and bytes that JSON does not have. */

/** The memory of a device that was never asked anything. */
export const EMPTY = { spent: [], permanent: [], reports: [] };

export const write = (memory) =>
  JSON.stringify(memory, (_, value) => {
    if (typeof value === "bigint") return { integer: `${value}` };
    return value instanceof Uint8Array ? { bytes: [...value] } : value;
  });

export const read = (text) => JSON.parse(text, (_, value) => kept(value ?? {}) ?? value);

const kept = ({ integer, bytes }) =>
  integer !== undefined ? BigInt(integer) : bytes !== undefined ? Uint8Array.from(bytes) : undefined;
