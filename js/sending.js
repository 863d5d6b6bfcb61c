/**
 * Sending what waits: reports that were agreed to, and deletions that were asked for.
 *
 * Those of a study with a channel leave in batches, so that their moments say nothing of whose they are.
 */

import { originOf } from "./address.js";
import { unloaded } from "./errors.js";
import { randomUint32, systemRandom } from "./randomness.js";
import { put, remove } from "./upload.js";

const REQUESTS = { queued: put, ticketless: put, withdrawn: remove };
const LONGEST_MS = 3e5;
const HOUR_MS = 36e5;

const coin = () => randomUint32(systemRandom) & 1;
const awaitsToken = ({ body, channel, token }) => body && channel?.tickets && !token;
const putOff = (report) => (report.due = drawDue(report.channel));

/** Ask for deletions and send queued reports, byte for byte as written, from a device and its ledger. */
export function send(device, { attempts = 5, now } = {}) {
  const { name, collector, origin, write, move, transport } = device;
  const { alone = (work) => navigator.locks.request(`${name} flush`, work) } = device;

  // One tab at a time, so that a deletion is never sent before the report it is about.
  return alone(async () => {
    const until = Date.now() + LONGEST_MS;
    const waiting = shuffled(await write(choose(origin, now, transport.relay)));
    // Each once before any a second time: what is never settled holds nothing else up. A server that is overloaded or
    // cannot be reached gets no further request before the pause.
    for (let attempt = 0; waiting[0] && attempt < attempts; attempt++) {
      if (attempt) await pause(attempt);
      for (let again = false; waiting[0] && !again; ) {
        const id = waiting.shift();
        again = Date.now() < until && !(await isSettled(id, attempts - attempt));
        if (again) waiting.push(id);
      }
    }
    // Batched reports whose moment passed without a request get another.
    const isMissed = ({ id, due }) => waiting.includes(id) && due && due <= Date.now();
    if (waiting[0]) await write(({ reports }) => reports.filter(isMissed).forEach(putOff));

    /** Make the request that a report still waits for, if any: whether nothing is left to do now. */
    async function isSettled(id, left) {
      const report = await move(id, {});
      const step = REQUESTS[report?.state];
      if (!step) return true;
      // Noted before the first upload: a report that is withdrawn before that is forgotten without a request.
      if (report.body && !awaitsToken(report) && !report.left) {
        await move(id, { [report.state]: { left: true } });
        return isSettled(id, left);
      }
      // A report for a former origin goes to where the collector is now.
      const base = originOf(report.collector) === origin ? report.collector : collector;
      const request = (more) => step(transport, `${base}/v1/studies/${report.study}`, { ...report, ...more });
      const isHurried = !report.channel || (now && !report.body);
      const { changes, again } = await (isHurried ? request() : inBatch(device, report, request, left));
      await move(id, { [report.state]: changes });
      return !again;
    }
  });
}

/** Return ids in random order: what fails always blocks no other for good. */
function shuffled(ids) {
  const places = new Map(ids.map((id) => [id, randomUint32(systemRandom)]));
  return ids.sort((one, other) => places.get(one) - places.get(other));
}

/** Full jitter: a pause before attempt 1, 2, … drawn from a range that doubles. */
function pause(attempt) {
  const longest = Math.min(60_000, 500 * 2 ** attempt);
  return new Promise((resolve) => setTimeout(resolve, longest * Math.random()));
}

/** A moment drawn evenly from the window after that of `now`, in milliseconds since 1970 as Date.now() is. */
export function drawDue({ batches: { hours } }, now = Date.now(), random = systemRandom) {
  const width = hours * HOUR_MS;
  return Math.floor((Math.floor(now / width) + 1 + randomUint32(random) / 2 ** 32) * width);
}

/**
 * Return the ids of what may leave now to this origin, and draw a moment for the rest.
 *
 * now: deletions leave at once. relay: of the transport, if it has one.
 */
export const choose = (origin, now, relay) => (memory) => {
  const moment = Date.now();
  const isHurried = ({ body }) => now && !body;

  function isDue(report) {
    const { channel, due } = report;
    if (!channel || isHurried(report)) return true;
    const longestWait = 2 * channel.batches.hours * HOUR_MS;
    // A moment too far ahead was drawn before the clock was moved back.
    if (due ? due - moment > longestWait : !awaitsToken(report)) putOff(report);
    return !(report.due > moment);
  }

  const isOwn = (report) => REQUESTS[report.state] && report.origin === origin;
  const due = memory.reports.filter((report) => isOwn(report) && isDue(report));
  // A token request carries the person's ticket, so a batched report never leaves next to it. A first token request
  // goes first. Among retries chance decides, so none blocks the others permanently.
  const asking = due.filter((report) => awaitsToken(report) && report.ticket);
  const batched = due.filter((report) => report.channel && !awaitsToken(report) && !isHurried(report));
  const isFirst = asking.some(({ asked }) => !asked);
  // Through a relay one batched request leaves at a time, because two at once belong to one person.
  const leaves = batched[randomUint32(systemRandom) % batched.length];
  const others = batched.filter((report) => report !== leaves);
  const later = relay ? others : asking[0] && batched[0] ? (isFirst || coin() ? batched : asking) : [];
  later.forEach(putOff);
  return due.filter((report) => !later.includes(report)).map(({ id }) => id);
};

/** Make a batched report's next request, or that for its token: {changes, again}. left: attempts in this flush. */
async function inBatch({ transport, move }, report, request, left) {
  const { channel, token, due } = report;
  const drawn = { due: drawDue(channel) };
  if (awaitsToken(report)) {
    const { obtain } = await import("./tickets.js").catch(unloaded);
    const { changes, again } = await obtain(transport, report, move);
    // Its time begins when it has one.
    return { changes: { ...changes, ...(changes.token && drawn) }, again };
  }
  // The person withdrew it meanwhile.
  if (!due) return { changes: drawn };
  // Never both: a ticket says who somebody is.
  const more = { Authorization: `PrivateToken token="${token}"` };
  const { changes, again } = await request(token && { ticket: "", more });
  // Nothing of it waits any more: neither does its moment stay.
  if (/^(sent|refused)$/.test(changes.state)) return { changes: { ...changes, token: "", due: 0 } };
  if (changes.state === null) return { changes };
  // What is tried in vain is tried again in the next window, not when this device is back online, which others may see.
  return { changes: again && left > 1 ? changes : { ...changes, ...drawn }, again };
}
