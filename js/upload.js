/**
 * Requests by a transport, a function like fetch, and what the answers mean. Only the receipts and problems of the
 * collector that publishes the study settle anything: what a proxy, a captive portal or another one says leaves a
 * report where it was.
 */

import { sha256 } from "./digest.js";
import { uncached } from "./uncached.js";

const JSON_TYPE = "application/json";

/**
 * Which collector serves exactly the study that was answered, before anything is sent there: {changes, again}, of the
 * report, and whether to ask again soon.
 */
export const findPublisher = (transport, url, { version, digest }) =>
  request(transport, `${url}?version=${version}`, async ({ bytes, publisher, reason }) => {
    const isServed = publisher && (await sha256(bytes)) === digest;
    return isServed ? { publisher } : { reason: `unserved ${reason}` };
  });

/** Send a report, perhaps with more headers: {changes, again}, as above. */
export function put(transport, url, report) {
  const { body, invitation, more } = report;
  const headers = { "Content-Type": JSON_TYPE, ...(invitation && { "LDPKit-Invitation": invitation }), ...more };
  const changesOf = ({ said, result, problem, date, reason }) => {
    if (/^(stored|duplicate)$/.test(result)) return { state: "sent", invitation: "", reason: "" };
    const isLast =
      said.digest === report.digest &&
      (/^report-(invalid|conflict|withdrawn)$/.test(problem) ||
        (problem === "study-closed" && isOver(report.closes, date)));
    if (isLast) return { state: "refused", invitation: "", reason };
    return { state: problem === "invitation-needed" ? "uninvited" : "queued", reason };
  };
  return request(transport, url, changesOf, { method: "PUT", body, headers }, report);
}

/** Ask for a report's deletion: without a state once the collector takes it never more. */
export function remove(transport, url, report) {
  const changesOf = ({ result, reason }) => (result === "withdrawn" ? { state: null } : { reason });
  const headers = { "LDPKit-Withdrawal": report.secret };
  return request(transport, url, changesOf, { method: "DELETE", headers }, report);
}

/** Full jitter: a pause before attempt 1, 2, … drawn from a range that doubles. */
export function pause(attempt) {
  const firstMs = 500;
  const mostMs = 60_000;
  const longest = Math.min(mostMs, firstMs * 2 ** attempt);
  return new Promise((resolve) => setTimeout(resolve, longest * Math.random()));
}

/** A study may be closed by mistake, and clocks be wrong; the collector's can only make the wait longer. */
const isOver = (closes, date) =>
  // The last day, and 30 more.
  Math.min(Date.now(), Date.parse(date) || Infinity) >= Date.parse(closes) + 31 * 864e5;

/** Make a request: what an answer changes, and whether to ask again soon. */
async function request(transport, url, changesOf, options, report) {
  const answer = await exchange(transport, url, options, report);
  return { ...answer, changes: await changesOf(answer) };
}

/**
 * What came, whole, within one deadline, and what it says where it comes from the report's publisher; without a report
 * from nobody's. Nothing that links requests is sent along.
 */
export async function exchange(transport, url, options, report) {
  const timeoutMs = 20_000;
  try {
    const its = report ? `${url}/reports/${report.id}` : url;
    const kept = { credentials: "omit", redirect: "error", referrerPolicy: "no-referrer", signal: AbortSignal.timeout(timeoutMs) };
    const response = await transport(...uncached(its, { ...options, ...kept }));
    const { status, headers } = response;
    const bytes = await response.arrayBuffer();
    const [type] = /^[^;\s]*/.exec(headers.get("Content-Type")?.toLowerCase());
    const publisher = headers.get("LDPKit-Collector");
    // Without a header it is null.
    const said = publisher == report?.publisher ? read(bytes) : {};
    const [, problem] = /^application\/problem\+json urn:ldpkit:problem:([\w-]+)$/.exec(`${type} ${said.type}`) ?? [];
    return {
      bytes,
      said,
      // Of a receipt for this report, by 200 or 201.
      result: status >> 1 === 100 && type === JSON_TYPE && said.id === report?.id && said.result,
      problem,
      publisher,
      date: headers.get("Date"),
      // Client errors that time can heal: request timeout, too early, too many requests.
      again: /^(5|408|42[59])/.test(status),
      reason: problem ? `problem ${status} ${problem}` : `foreign ${status}`,
    };
  } catch {
    return { said: {}, again: true, reason: "unreachable" };
  }
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
