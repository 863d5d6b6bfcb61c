/** Where a collector is. */

import { fail } from "./errors.js";

// https, or http on this machine; without who is asked as, or a query.
const SAFE = /^(https:|http:\/\/(localhost|127\.0\.0\.1|\[::1])(?![^:/]))[^\s?#@]*$/;

/** One spelling of a collector's URL that may be sent to. Throws LdpkitError "input". */
export function safeBaseOf(url) {
  try {
    return SAFE.exec(baseOf(url))[0];
  } catch {
    fail("input", "must be an https URL", "collector");
  }
}

/** One spelling of any URL: of one that a ledger has from an earlier release. */
export const baseOf = (url) => new Request(url).url.replace(/\/+$/, "");

/** Whether a ledger's row is of that collector. One of a ledger that did not keep collectors is of any. */
export const isAt = (collector, { collector: its = collector }) => baseOf(its) === collector;
