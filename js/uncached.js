/** Requests that no cache answers, and that tell nothing of the device. */

import { randomUint32, systemRandom } from "./randomness.js";

/**
 * What fetch is given so that no cache answers or keeps anything, nor has a validator to send that links requests. Without
 * requests that know `cache` (React Native's) chance in the address does so: theirs would put the device's clock there.
 */
export function uncached(url, options) {
  if ("cache" in Request.prototype) return [url, { ...options, cache: "no-store" }];
  const more = `${url.includes("?") ? "&" : "?"}_=${randomUint32(systemRandom)}`;
  return [options.method ? url : url + more, options];
}
