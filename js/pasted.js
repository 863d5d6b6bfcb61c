/** What a person was given to take part, as they pasted it. ldp_client/device/policy.py is its twin. */

import { fail } from "./errors.js";
import { isText } from "./shapes.js";

/**
 * An invitation without the blanks, quotes and dashes of the letter that it was copied from: a header could not hold
 * them; of a whole link what it carries. Throws LdpkitError "input" for what is no text.
 */
export function read(given) {
  if (!isText(given)) fail("input", "must be text", "invitation");
  const ends = /^["'<>()[\],.;:`]+|["'<>()[\],.;:`]+$/g;
  return given.replace(/[^!-~]/g, "").split("#invitation=").at(-1).replace(ends, "");
}
