// The methods of expo-sqlite's SQLiteDatabase that a ledger calls, on node:sqlite.

/** A connection of its own to that file, as openDatabaseSync gives with useNewConnection. */
export function standIn(databasePath) {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const database = new DatabaseSync(databasePath);
  return {
    databasePath,
    execSync: (source) => database.exec(source),
    getFirstSync: (source) => database.prepare(source).get() ?? null,
    runSync: (source, ...values) => database.prepare(source).run(...values),
  };
}
