/**
 * Requests to the collector, and what their answers mean. Only its own receipts and problems settle anything: what
 * a proxy, a captive portal or another collector says leaves a report where it was.
 */

import { sha256 } from "./study.js";

const HEADER = "LDPKit-";
const JSON_TYPE = "application/json";

/** Send a report: {changes, again}, of the report, and whether to send it again soon. */
export async function put(url, report) {
  const { body, invitation, digest, closes } = report;
  const headers = { "Content-Type": JSON_TYPE, ...(invitation && { [`${HEADER}Invitation`]: invitation }) };
  const answer = await request(url, { method: "PUT", body, headers });
  const { said, problem, publisher, again, reason } = answer;
  if (isReceipt(answer, report, ["stored", "duplicate"])) {
    return { changes: { state: "sent", invitation: "", publisher, reason: "" } };
  }
  if (problem === "invitation-needed") return { changes: { state: "uninvited", reason } };
  const isLast =
    (["report-invalid", "report-conflict", "report-withdrawn"].includes(problem) ||
      (problem === "study-closed" && isOver(closes, answer.date))) &&
    said.digest === digest &&
    publisher &&
    publisher === (await publisherOf(url, report));
  return { changes: { state: isLast ? "refused" : "queued", reason }, again };
}

/** Ask for a report's deletion: without a state once the collector takes it never more. */
export async function remove(url, report) {
  // A report of an older ledger has none.
  if (!report.secret) return { changes: { reason: "only the collector's operator can delete it" } };
  const answer = await request(url, { method: "DELETE", headers: { [`${HEADER}Withdrawal`]: report.secret } });
  const { again, reason } = answer;
  return isReceipt(answer, report, ["withdrawn"]) ? { changes: { state: null } } : { changes: { reason }, again };
}

/** Full jitter: a pause before attempt 1, 2, … drawn from a range that doubles. */
export function pause(attempt) {
  const firstMs = 500;
  const mostMs = 60_000;
  const longest = Math.min(mostMs, firstMs * 2 ** attempt);
  return new Promise((resolve) => setTimeout(resolve, longest * Math.random()));
}

/** Also of the collector that took the report, once one has. */
const isReceipt = ({ status, type, said, publisher }, report, results) =>
  (status === 200 || status === 201) &&
  type === JSON_TYPE &&
  said.id === report.id &&
  results.includes(said.result) &&
  publisher === (report.publisher || publisher);

/** A study may be closed by mistake, and clocks be wrong; the collector's can only make the wait longer. */
function isOver(closes, date) {
  const dayMs = 864e5;
  const graceDays = 30;
  const now = Math.min(Date.now(), Date.parse(date) || Infinity);
  return now >= Date.parse(closes) + (graceDays + 1) * dayMs;
}

/** Which collector serves exactly the study that was answered; false where none does. */
async function publisherOf(url, { version, digest }) {
  const { text, publisher } = await request(url.replace(/\/reports\/\w+$/, `?version=${version}`));
  return (await sha256(new TextEncoder().encode(text))) === digest && publisher;
}

/** What came, whole, within one deadline. Nothing that links requests is sent along. */
async function request(url, options) {
  const timeoutMs = 20_000;
  try {
    const response = await fetch(url, {
      ...options,
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(timeoutMs),
    });
    const { status, headers } = response;
    const text = await response.text();
    const type = (headers.get("Content-Type") ?? "").split(";")[0].slice(0, 64);
    const said = read(text);
    const [, problem] = (type === "application/problem+json" && /^urn:ldpkit:problem:([\w-]+)$/.exec(said.type)) || [];
    return {
      status,
      type,
      text,
      said,
      problem,
      publisher: headers.get(`${HEADER}Collector`),
      date: headers.get("Date"),
      // Client errors that time can heal: request timeout, too early, too many requests.
      again: status >= 500 || [408, 425, 429].includes(status),
      reason: `HTTP status ${status}, ${problem ?? `and no answer of a collector: ${type}`}`,
    };
  } catch {
    return { said: {}, text: "", again: true, reason: "the collector cannot be reached" };
  }
}

/** The object that a JSON text is, an empty one for anything else. */
function read(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}
