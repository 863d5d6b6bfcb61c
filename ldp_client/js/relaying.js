/**
 * A page's parts come from a server, which sees the device's address: all that relaying takes is there before it is decided
 * what leaves.
 */

import { visited } from "./beside.js";
import { unloaded } from "./errors.js";

// More than what a bundle has at hand takes; what is fetched takes longer than any number of these.
const MOST_TURNS = 99;
const VISIT_MS = 72e5;
// When it was fetched, 0 where it was at hand; and the ledgers that know.
let fetched;
const told = new WeakSet();

/** Load it, once; where it was fetched for a page, note that in each ledger as a visit. Throws LdpkitError "module". */
export async function ready(write) {
  fetched ??= await load();
  if (told.has(write)) return;
  if (Date.now() - fetched < VISIT_MS) await write(visited);
  told.add(write);
}

async function load() {
  let isHere;
  const loading = import("./parts.js").then(({ load }) => load()).then(() => (isHere = true)).catch(unloaded);
  for (let turn = 0; turn < MOST_TURNS && !isHere; turn++) await 0;
  const isFetched = !isHere;
  await loading;
  // Without a location there is no page: the parts lie on this machine.
  return isFetched && globalThis.location ? Date.now() : 0;
}
