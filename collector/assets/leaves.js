/** When a report of a study with a channel leaves, and why not yet, in words; and the clock for it. */

import { locale, say } from "./words.js";

const MINUTE = { dateStyle: "long", timeStyle: "short", numberingSystem: "latn" };
const HOUR_MS = 36e5;
let clock;

const hostOf = ({ tokens }) => new URL(tokens.issuer).host;

/** What a report that was agreed to waits for: its token, or a moment in its window; "" for any other. */
export function howItLeaves({ state, channel, token, due } = {}) {
  if (state !== "queued" || !channel) return "";
  if (!due) return channel.tokens && !token ? say("script.leaves.token", { issuer: hostOf(channel) }) : "";
  const width = channel.batches.hours * HOUR_MS;
  const from = Math.floor(due / width) * width;
  const [first, last] = [from, from + width].map((moment) => new Intl.DateTimeFormat(locale(), MINUTE).format(moment));
  return say("script.leaves.between", { from: first, until: last });
}

/** Why an issuer gave no token, of a reason as upload.js has it. */
export function whyNoToken(reason, channel) {
  const [, , status, problem = "–"] = reason.split(" ");
  const its = status ? say("script.reason.answer", { status, problem }) : say("script.reason.no_answer");
  return say("script.reason.issuer", { issuer: hostOf(channel), reason: its });
}

/** Do `work` once a report is due, if this page is open then. */
export function whenDue({ state, due } = {}, work) {
  clearTimeout(clock);
  // From a while after, as a timer may be early; what is due already was tried when the page was opened.
  if (state === "queued" && due > Date.now()) clock = setTimeout(work, due - Date.now() + 1000);
}
