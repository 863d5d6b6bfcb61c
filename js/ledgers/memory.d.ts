import type { Ledger } from "../index.js";

/** A ledger in memory, for tests: when the process ends, the device has forgotten what it answered. */
export function memoryLedger(): Ledger;
