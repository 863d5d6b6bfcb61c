/** A ledger that is forgotten when the process ends, and with it that anything was answered: for tests and trials. */

import { orElse } from "../errors.js";
import { inTurn } from "./turns.js";
import { EMPTY, read as readText, write as writeText } from "./written.js";

/** A new ledger; devices that share it answer once between them. */
export function memoryLedger() {
  let text = writeText(EMPTY);

  /** Works on a copy, which is kept only once all of it is written. */
  async function run(work, isKept) {
    const memory = readText(text);
    const result = work(memory);
    if (isKept) text = writeText(memory);
    return result;
  }
  const [read, write] = [false, true].map((isKept) => (work) => run(work, isKept).catch(orElse("ledger")));
  return { read, write, alone: inTurn() };
}
