import type { Study } from "./index.js";

/**
 * The study that a collector publishes under that id, to be asked now. collector: its base URL. Rejects with LdpkitError
 * "closed" where the collector says that the study takes no reports, before any noise is drawn for one; "input" where it
 * has none of that id, or the address is wrong; "study" as `parseStudy`; with a TypeError or DOMException where it does
 * not answer.
 */
export function fetchStudy(collector: string, id: string): Promise<Study>;
