/** A ledger that is forgotten when the process ends, and with it that anything was answered: for tests and trials. */

import { orElse } from "../errors.js";
import { inTurn } from "./turns.js";
import { EMPTY, ledgerInText } from "./written.js";

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
