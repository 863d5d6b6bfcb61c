import type { Ledger } from "../index.js";

/**
 * A ledger that is forgotten when the process ends, and with it that anything was answered: for tests and trials.
 * Devices that share one answer once between them.
 */
export function memoryLedger(): Ledger;
