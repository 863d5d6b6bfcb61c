import type { Ledger } from "../index.js";

/** What a ledger calls of expo-sqlite's SQLiteDatabase. */
export interface ExpoDatabase {
  readonly databasePath: string;
  execSync(source: string): void;
  getFirstSync(source: string): unknown;
  runSync(source: string, value: string): unknown;
}

/**
 * The ledger in a database, made when missing: `openDatabaseSync("ldpkit.db", { useNewConnection: true })`, opened for
 * it alone, so that no transaction of the app runs into its own. Throws LdpkitError "ledger".
 */
export function expoLedger(database: ExpoDatabase): Ledger;
