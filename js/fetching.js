/** The study that a collector publishes under an id. */

import { fail } from "./errors.js";
import { parseStudy } from "./study.js";
import { uncached } from "./uncached.js";

/** As fetching.d.ts says. Nothing that links requests is sent along. */
export async function fetchStudy({ collector, transport }, id) {
  const timeoutMs = 20_000;
  const signal = AbortSignal.timeout(timeoutMs);
  const url = `${collector}/v1/studies/${encodeURIComponent(id)}`;
  const options = { credentials: "omit", redirect: "error", referrerPolicy: "no-referrer", signal };
  const response = await transport(...uncached(url, options));
  const { ok, status, headers } = response;
  if (status === 410 || headers.get("LDPKit-Study") === "closed") fail("closed", "takes no reports");
  if (!ok) fail("input", `was not found: HTTP status ${status}`, "study");
  const study = await parseStudy(await response.text());
  if (study.id !== id) fail("input", `is another: ${study.id}`, "study");
  return study;
}
