/**
 * Requests by a transport, a function like fetch, and what the answers mean.
 *
 * Only a collector's receipts and problems settle anything, never what a proxy or a captive portal says.
 */

const JSON_TYPE = "application/json";
const TIMEOUT_MS = 20_000;

/** Send a report, perhaps with more headers: {changes, again (worth another attempt)}. */
export async function put(transport, url, report) {
  const { body, ticket, more } = report;
  const shown = ticket && { "LDPKit-Ticket": ticket };
  const headers = { "Content-Type": JSON_TYPE, ...shown, ...more };
  const answer = await exchange(transport, url, { method: "PUT", body, headers }, report);
  const { said, result, problem, date, reason, again } = answer;
  if (/^(stored|duplicate)$/.test(result)) return { changes: { state: "sent", ticket: "", reason: "" } };
  const isRefused = /^report-(invalid|conflict|withdrawn)$/.test(problem);
  const isLate = problem === "study-closed" && isOver(report.closes, date);
  if (said.digest === report.digest && (isRefused || isLate)) {
    return { changes: { state: "refused", ticket: "", reason } };
  }
  const state = /^ticket-/.test(problem) && !more ? "ticketless" : "queued";
  return { changes: { state, reason }, again };
}

/** Ask for a report's deletion: without a state once the collector takes it never more. */
export async function remove(transport, url, report) {
  const headers = { "LDPKit-Withdrawal": report.secret };
  const { result, reason, again } = await exchange(transport, url, { method: "DELETE", headers }, report);
  return result === "withdrawn" ? { changes: { state: null } } : { changes: { reason }, again };
}

/** A study may be closed by mistake, and clocks be wrong: a report waits for the last day, and 30 more, by both. */
const isOver = (closes, date) =>
  Math.min(Date.now(), Date.parse(date) || Infinity) >= Date.parse(closes) + 31 * 864e5;

/** Return the whole answer, and what it says. */
export async function exchange(transport, url, options, report) {
  try {
    const response = await ask(transport, report ? `${url}/reports/${report.id}` : url, options);
    const { status, headers } = response;
    const bytes = await response.arrayBuffer();
    const [type] = /^[^;\s]*/.exec(headers.get("Content-Type")?.toLowerCase());
    const said = read(bytes);
    const problems = /^application\/problem\+json urn:ldpkit:problem:([\w-]+)$/;
    const [, problem] = problems.exec(`${type} ${said.type}`) ?? [];
    return {
      bytes,
      said,
      // Of a receipt for this report, by 200 or 201.
      result: status >> 1 === 100 && type === JSON_TYPE && said.id === report?.id && said.result,
      problem,
      date: headers.get("Date"),
      // Client errors that time can heal: request timeout, too early, too many requests.
      again: /^(5|408|42[59])/.test(status),
      reason: problem ? `problem ${status} ${problem}` : `foreign ${status}`,
    };
  } catch (error) {
    // Nothing proves what a relay says. If it is true, no attempt succeeds until people have acted.
    const reason = error?.code === "key" ? "key" : "unreachable";
    return { said: {}, again: reason !== "key", reason };
  }
}

/** Make a request that no cache answers or keeps, without a cookie or anything else that links requests. */
export function ask(transport, url, given) {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const bare = { credentials: "omit", redirect: "error", referrerPolicy: "no-referrer", signal };
  const options = { ...given, ...bare };
  if ("cache" in Request.prototype) return transport(url, { ...options, cache: "no-store" });
  // React Native's requests would put the device's clock there.
  const more = `${url.includes("?") ? "&" : "?"}_=${crypto.getRandomValues(new Uint32Array(1))}`;
  return transport(options.method ? url : url + more, options);
}

/** The object that bytes of JSON are, an empty one for anything else. React Native may have no TextDecoder. */
function read(bytes) {
  const escape = (byte) => `%${(byte + 256).toString(16).slice(1)}`;
  try {
    return Object(JSON.parse(decodeURIComponent(Array.from(new Uint8Array(bytes), escape).join(""))));
  } catch {
    return {};
  }
}
