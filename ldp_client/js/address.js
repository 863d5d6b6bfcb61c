/** Where a collector is. */

import { fail } from "./errors.js";

// https, or http on this machine; without who is asked as, a query, or slashes at its end.
const SAFE = /^(https:|http:\/\/(localhost|127\.0\.0\.1|\[::1])(?![^:/]))[^\s?#@]*?(?=\/*$)/;

/** One spelling of a collector's URL that may be sent to. Throws LdpkitError "input". */
export function safeBaseOf(url) {
  try {
    return SAFE.exec(new Request(url).url)[0];
  } catch {
    fail("input", "must be an https URL", "collector");
  }
}

/** One spelling of any URL: of one that a ledger has from an earlier release. */
export const baseOf = (url) => new Request(url).url.replace(/\/+$/, "");
