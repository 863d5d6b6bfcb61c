/** The study that a collector publishes under an id. */

import { fail } from "./errors.js";
import { parseStudy } from "./study.js";
import { ask } from "./upload.js";

/** As index.d.ts says. */
export async function fetchStudy({ collector, transport }, id) {
  const response = await ask(transport, `${collector}/v1/studies/${encodeURIComponent(id)}`);
  const { ok, status, headers } = response;
  if (status === 410 || headers.get("LDPKit-Study") === "closed") fail("closed", "takes no reports");
  if (!ok) fail("input", `was not found: HTTP status ${status}`, "study");
  const study = await parseStudy(await response.text());
  if (study.id !== id) fail("input", `is another: ${study.id}`, "study");
  return study;
}
