/** Requests to the collector, and what their answers mean. */

const OK = 200;
// What the answer to a deletion says where nothing is left: done, never there, gone.
const DELETED = [OK, 404, 410];
const NOT_INVITED = 403;
const TIMEOUT_MS = 10_000;
const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 60_000;
// Client errors that time can heal: request timeout, too early, too many requests.
const TEMPORARY = [408, 425, 429];

/** Send a report: the state that it is in then. */
export async function put(url, { body, invitation }) {
  const headers = { "Content-Type": "application/json", ...(invitation && { "LDPKit-Invitation": invitation }) };
  const status = await request(url, { method: "PUT", body, headers });
  if (status === OK) return "sent";
  if (status === NOT_INVITED) return "uninvited";
  return status >= 400 && status < 500 && !TEMPORARY.includes(status) ? "refused" : "queued";
}

/** Ask for a report's deletion: null once the collector does not have it any more. */
export async function remove(url) {
  const status = await request(url, { method: "DELETE" });
  return DELETED.includes(status) ? null : "withdrawn";
}

/** Full jitter: a pause before attempt 1, 2, … drawn from a range that doubles. */
export function pause(attempt) {
  const longest = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt);
  return new Promise((resolve) => setTimeout(resolve, longest * Math.random()));
}

/**
 * The HTTP status, OK for all good ones, or 0 when the collector cannot be reached. Nothing that links
 * requests is sent along.
 */
async function request(url, options) {
  try {
    const response = await fetch(url, {
      ...options,
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return response.ok ? OK : response.status;
  } catch {
    return 0;
  }
}
