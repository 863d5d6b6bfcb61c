import type { Ledger } from "../index.js";

/**
 * The ledger in the SQLite file of that absolute path, made when missing, for any number of processes of Node (22.13 or
 * later). While one of them sends, a second file beside it, of the same name and "-sending", is locked. Rejects with LdpkitError
 * "ledger".
 */
export function nodeLedger(path: string): Promise<Ledger>;
