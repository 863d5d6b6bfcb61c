import type { Device, Study } from "./index.js";

/**
 * The study that the device's collector publishes under that id, to be asked now, fetched by the device's transport.
 * Rejects with LdpkitError "closed" if the collector says that the study takes no reports, before any noise is drawn;
 * "input" if it has none of that id or sends another; "study" as `parseStudy`; with the transport's error if no answer
 * comes.
 */
export function fetchStudy(device: Device, id: string): Promise<Study>;
