/** Where a collector is. */

import { fail } from "./errors.js";

/** One spelling of its URL. Throws LdpkitError "input". */
export function baseOf(url) {
  try {
    return new Request(url).url.replace(/\/$/, "");
  } catch {
    fail("input", "must be a URL", "collector");
  }
}
