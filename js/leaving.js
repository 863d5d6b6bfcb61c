/** When a report of a study with a channel leaves: in a batch, so that its moment says nothing of whose it is. */

import { unloaded } from "./errors.js";
import { randomUint32, systemRandom } from "./randomness.js";

const HOUR_MS = 36e5;
const coin = () => randomUint32(systemRandom) & 1;
const awaitsToken = ({ body, channel, token }) => body && channel?.tickets && !token;
const putOff = (report) => (report.due = drawDue(report.channel));

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

  const waits = (report) => /^[qtw]/.test(report.state) && report.origin === origin;
  const due = memory.reports.filter((report) => waits(report) && isDue(report));
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
  return new Set(due.filter((report) => !later.includes(report)).map(({ id }) => id));
};

/** Draw another moment for batched reports whose moment passed without a request. */
export const postpone = (ids) => ({ reports }) =>
  reports.filter(({ id, due }) => ids.includes(id) && due && due <= Date.now()).forEach(putOff);

/** Return a report's next request, `step` of upload.js or for its token. left: attempts in this flush. */
export const inBatches = (step, move, left, now) => async (transport, url, report) => {
  const { body, channel, token, due } = report;
  // What is to be deleted has no body, and leaves as it came.
  if (!body && now) return step(transport, url, report);
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
  const { changes, again } = await step(transport, url, { ...report, ...(token && { ticket: "", more }) });
  // Nothing of it waits any more: neither does its moment stay.
  if (/^(sent|refused)$/.test(changes.state)) return { changes: { ...changes, token: "", due: 0 } };
  if (changes.state === null) return { changes };
  // What is tried in vain is tried again in the next window, not when this device is back online, which others may see.
  return { changes: again && left > 1 ? changes : { ...changes, ...drawn }, again };
};
