/** ldpkit in the browser: studies, exact noise, and a device that answers each question once. */

export { openDevice } from "./device.js";
export { LdpkitError } from "./errors.js";
export { mechanismFor } from "./mechanisms/index.js";
export { perturbAnswers } from "./report.js";
export { parseStudy } from "./study.js";
