import type { Ledger } from "../index.js";

/** The ledger in the SQLite file of that absolute path, for any number of processes of Node 22.13 or later. */
export function nodeLedger(path: string): Promise<Ledger>;
