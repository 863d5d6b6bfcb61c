/** Requests to the collector, and what their answers mean. */

const OK = 200;

/** Send a report: the state that it is in then. */
export async function put(url, { body, invitation }) {
  const headers = { "Content-Type": "application/json", ...(invitation && { "LDPKit-Invitation": invitation }) };
  const status = await request(url, { method: "PUT", body, headers });
  if (status === OK) return "sent";
  const notInvited = 403;
  if (status === notInvited) return "uninvited";
  // But for those that time can heal: request timeout, too early, too many requests.
  return status >= 400 && status < 500 && ![408, 425, 429].includes(status) ? "refused" : "queued";
}

/** Ask for a report's deletion: null once the collector does not have it any more. */
export async function remove(url, { secret }) {
  // A report of an older ledger has none: only the collector's operator can delete it.
  if (!secret) return "withdrawn";
  const status = await request(url, { method: "DELETE", headers: { "LDPKit-Withdrawal": secret } });
  // Nothing is left: done, never there, gone.
  return [OK, 404, 410].includes(status) ? null : "withdrawn";
}

/** Full jitter: a pause before attempt 1, 2, … drawn from a range that doubles. */
export function pause(attempt) {
  const firstMs = 500;
  const mostMs = 60_000;
  const longest = Math.min(mostMs, firstMs * 2 ** attempt);
  return new Promise((resolve) => setTimeout(resolve, longest * Math.random()));
}

/**
 * The HTTP status, OK for all good ones, or 0 when the collector cannot be reached. Nothing that links
 * requests is sent along.
 */
async function request(url, options) {
  const timeoutMs = 10_000;
  try {
    const response = await fetch(url, {
      ...options,
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(timeoutMs),
    });
    return response.ok ? OK : response.status;
  } catch {
    return 0;
  }
}
