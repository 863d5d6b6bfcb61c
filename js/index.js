/** ldpkit in the browser: studies, exact noise, and a device that answers each question once. */

import { unloaded } from "./errors.js";

export { openDevice } from "./device.js";
export { LdpkitError } from "./errors.js";
export { mechanismFor } from "./mechanisms/index.js";
export { fetchStudy, parseStudy } from "./study.js";

// Loaded when it is called.
export const oblivious = (options) =>
  import("./oblivious.js").catch(unloaded).then((module) => module.oblivious(options));
