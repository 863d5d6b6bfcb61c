/**
 * What may leave in one flush, and nothing beside it that tells whose it is: ldp_client/device/beside.py is its twin, and
 * says why.
 */

import { unloaded } from "./errors.js";
import { drawDue } from "./leaving.js";
import { randomUint32, systemRandom } from "./randomness.js";

const HOUR_MS = 36e5;
const coin = () => randomUint32(systemRandom) & 1;

/** Until when nothing leaves through a relay, as the collector sees this device's address now: an hour, and up to one more. */
const drawApart = () => Math.floor(Date.now() + HOUR_MS * (1 + randomUint32(systemRandom) / 2 ** 32));

/**
 * The collector sees this device's address now: nothing leaves through a relay for a while, also of a study that this device
 * is still to answer.
 */
export function visited(memory) {
  memory.apart = drawApart();
}

const awaits = ({ body, channel, token }) => body && channel?.tokens && !token;
const isRelayed = (one) => one.channel?.oblivious && !awaits(one);
const isFresh = (one) => (awaits(one) ? !one.asked : !one.reason);

/**
 * The ids of the reports and deletions that leave now, of those that `isIts` says are this collector's; draws the moments of
 * the others, and forgets those that are over. reports: all; write: of their ledger; now: deletions leave whatever that tells.
 */
export async function decide(reports, write, isIts, now) {
  const isRelayed = reports.some(({ channel }) => channel?.oblivious);
  if (isRelayed) await (await import("./relaying.js").catch(unloaded)).ready(write);
  return write(leaveNow(isIts, now));
}

const leaveNow = (isIts, now) => (memory) => {
  const moment = Date.now();
  for (const until of ["apart", "unseen"]) {
    // What lies too far ahead was noted before the clock was moved back.
    if (memory[until] > moment) memory[until] = Math.min(memory[until], moment + 2 * HOUR_MS);
    else delete memory[until];
  }
  const isForced = ({ body }) => now && !body;
  const putOff = (one) => (one.due = drawDue(one.channel));

  /** Whether its time has come. Where the clock was moved that is not to be known: it is drawn anew, for what is overdue once. */
  function isDue(one) {
    if (!one.channel || isForced(one)) return true;
    const width = one.channel.batches.hours * HOUR_MS;
    const ahead = one.due - moment;
    if (awaits(one)) return !(ahead > 0 && ahead <= 2 * width);
    // By more than what a visit keeps it for.
    const isLate = -ahead > width + 2 * HOUR_MS && !one.late;
    if (isLate) {
      one.late = true;
      memory.apart = Math.max(memory.apart, drawApart());
    }
    if (!one.due || ahead > 2 * width || isLate) putOff(one);
    return one.due <= moment;
  }

  const due = memory.reports.filter((one) => /^[quw]/.test(one.state) && isIts(one)).filter(isDue);
  const relayed = due.filter((one) => isRelayed(one) && !isForced(one));
  // What waits for an invitation asks nobody.
  const clear = due.filter((one) => !isRelayed(one) && !(awaits(one) && !one.invitation));
  const goes = new Set(due);
  const isSeen = memory.apart > moment || due.some((one) => isRelayed(one) && isForced(one));
  const urgent = clear.filter((one) => isForced(one) || isFresh(one));
  // What was tried in the clear shows no address in the hour after a relay's turn; the relay waits too, else one that is never
  // reached would keep it for good.
  const tried = memory.unseen > moment ? clear.filter((one) => !urgent.includes(one)) : [];
  const isRelaysTurn = !isSeen && !urgent[0] && !tried[0] && (!clear[0] || coin());
  // Two at once through a relay are one person's.
  const [leaves] = isRelaysTurn ? relayed.splice(Math.floor((relayed.length * randomUint32(systemRandom)) / 2 ** 32), 1) : [];
  for (const one of relayed) {
    goes.delete(one);
    // What is held is overdue from now on: how long that is tells of a clock that was moved.
    if (leaves) putOff(one);
    else one.due = moment;
  }
  // All that was tried in the clear waits while a relay is waited for.
  if (leaves || (relayed[0] && isSeen)) for (const one of clear) if (leaves || !urgent.includes(one)) goes.delete(one);
  for (const one of tried) goes.delete(one);

  // Nothing in a batch leaves beside a request for a token, which says who somebody is. One that is never granted keeps no
  // report for good.
  const shown = clear.filter((one) => goes.has(one));
  const [asking, batched] = [shown.filter(awaits), shown.filter((one) => one.channel && !awaits(one) && !isForced(one))];
  if (asking[0] && batched[0]) {
    for (const one of asking.some(isFresh) || coin() ? batched : asking) {
      goes.delete(one);
      putOff(one);
    }
  }
  if (shown[0]) memory.apart = drawApart();
  if (due.some((one) => goes.has(one) && isRelayed(one))) memory.unseen = drawApart();
  return new Set([...goes].map(({ id }) => id));
};
