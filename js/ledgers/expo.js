/** A ledger of a React Native app, on expo-sqlite. */

import { fail } from "../errors.js";
import { inTurn } from "./memory.js";
import { sqliteLedger } from "./sqlite.js";

const turns = new Map();

/** As expo.d.ts says. */
export function expoLedger(database) {
  const { databasePath } = database;
  if (/^(:memory:)?$/.test(databasePath)) fail("ledger", "a database in memory forgets what was answered");
  if (!turns.has(databasePath)) turns.set(databasePath, inTurn());
  const ledger = sqliteLedger({
    execute: (sql) => database.execSync(sql),
    first: (sql) => database.getFirstSync(sql),
    run: (sql, value) => database.runSync(sql, value),
  });
  return { ...ledger, alone: turns.get(databasePath) };
}
