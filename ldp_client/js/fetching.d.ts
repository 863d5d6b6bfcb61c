import type { Device, Study } from "./index.js";

/**
 * The study that a collector publishes under that id, to be asked now. collector: its base URL. Rejects with LdpkitError
 * "closed" where the collector says that the study takes no reports, before any noise is drawn for one; "input" where it
 * has none of that id or sends another, or the address is wrong; "study" as `parseStudy`; with a TypeError or DOMException where it does
 * not answer. device: who is to answer it; it then notes, durably, that the collector sees its address now, and nothing
 * leaves through a relay for an hour, and up to one more. Give it wherever a study may state a relay.
 */
export function fetchStudy(collector: string, id: string, device?: Device): Promise<Study>;
