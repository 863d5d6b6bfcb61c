/** A ledger in memory, for tests: when the process ends, the device has forgotten what it answered. */

import { orElse } from "../errors.js";
import { EMPTY, inTurn, ledgerInText } from "./text.js";

/** A new ledger; devices that share it answer once between them. */
export function memoryLedger() {
  let text = EMPTY;
  const ledger = ledgerInText({
    // Nothing is stored before all else went well.
    inTransaction: (work) => work(),
    load: () => text,
    store: (written) => (text = written),
    unusable: orElse("ledger"),
  });
  return { ...ledger, alone: inTurn() };
}
