import type { Ledger } from "../index.js";

/** What a ledger calls of expo-sqlite's SQLiteDatabase. */
export interface ExpoDatabase {
  readonly databasePath: string;
  execSync(source: string): void;
  getFirstSync(source: string): unknown;
  runSync(source: string, value: string): unknown;
}

/** The ledger in a database opened for it alone: `openDatabaseSync("ldpkit.db", { useNewConnection: true })`. */
export function expoLedger(database: ExpoDatabase): Ledger;
