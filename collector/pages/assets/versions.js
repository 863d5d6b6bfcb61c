/** The versions of this page's study that reports answer. Each is kept for the page's life. */

import { parseStudy } from "../../../js/index.js";

const TIMEOUT_MS = 10_000;
const kept = new Map();

/** That a study is of this digest is known. */
export const keep = (study) => kept.set(study.digest, study);

/** The version of a digest, or null if the collector does not serve it. */
export async function versionOf(id, version, digest) {
  if (kept.has(digest)) return kept.get(digest);
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(`/v1/studies/${id}?version=${version}`, { credentials: "omit", signal });
    const found = await parseStudy(await response.text());
    if (found.digest !== digest) return null;
    keep(found);
    return found;
  } catch (error) {
    console.error(error.code ?? error);
    return null;
  }
}
