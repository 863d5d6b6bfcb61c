/**
 * The versions of this page's study that reports answer. Each is kept for the page's life: who asks for one right after
 * a relay brought a report tells whose that was.
 */

import { parseStudy } from "../../ldp_client/js/index.js";

const TIMEOUT_MS = 10_000;
const kept = new Map();

/** That a study is of this digest is known. */
export const keep = (study) => kept.set(study.digest, study);

/**
 * The version of a digest, or null. ask: notes that the collector is asked, right before it is; where it is left out only
 * what is kept is found.
 */
export async function versionOf(id, version, digest, ask) {
  if (kept.has(digest) || !ask) return kept.get(digest) ?? null;
  try {
    await ask();
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
