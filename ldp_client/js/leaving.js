/** When a report of a study with a channel leaves: in a batch with others, so that its moment says nothing of whose it is. */

import { unloaded } from "./errors.js";
import { randomUint32, systemRandom } from "./randomness.js";

const HOUR_MS = 36e5;

/** A moment that is drawn evenly from the window after that of `now`, in milliseconds since 1970 as Date.now() is. */
export function drawDue({ batches: { hours } }, now = Date.now(), random = systemRandom) {
  const width = hours * HOUR_MS;
  return Math.floor((Math.floor(now / width) + 1 + randomUint32(random) / 2 ** 32) * width);
}

/**
 * The next request for a report that leaves now, as `step` of upload.js is one; before that for its token, as such a study
 * has them. left: how often it may be made now; now: whether deletions are asked for at once, whatever that tells;
 * isSeen: whether the collector saw this device's address lately, in another tab perhaps.
 */
export const inBatches = (step, move, left, now, isSeen) => async (url, kept) => {
  const { body, channel, token, due } = kept;
  // All about it goes through the relay that its study states, if any, and in no other way.
  const report = channel.oblivious
    ? { ...kept, send: (await import("./oblivious.js").catch(unloaded)).through(kept) }
    : kept;
  // What is to be deleted has no body, and leaves as it came.
  if (!body && now) return step(url, report);
  const drawn = { due: drawDue(channel) };
  if (body && channel.tokens && !token) {
    const { changes, again } = await (await import("./tokens.js").catch(unloaded)).obtain(report, move);
    // Its time begins when it has one.
    return { changes: changes.token ? { ...changes, ...drawn } : changes, again };
  }
  // The person withdrew it meanwhile, or was seen since this flush began.
  if (!due || (channel.oblivious && (await isSeen()))) return { changes: drawn };
  // Never both: an invitation says who somebody is.
  const its = token && { invitation: "", more: { Authorization: `PrivateToken token="${token}"` } };
  const { changes, again } = await step(url, { ...report, ...its });
  // Nothing of it waits any more: neither does its moment stay.
  if (/^(sent|refused)$/.test(changes.state)) return { changes: { ...changes, token: "", due: 0 } };
  if (changes.state === null) return { changes };
  // Which collector it is for is asked just before, and what is tried in vain again in the next window, not when this
  // device is back online, which others may see.
  return { changes: changes.publisher || (again && left > 1) ? changes : { ...changes, ...drawn }, again };
};
