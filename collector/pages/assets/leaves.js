/** When a report of a study with a channel leaves, and why not yet, in words; and the clock for it. */

import { locale, say } from "./words.js";

const MINUTE = { dateStyle: "long", timeStyle: "short", numberingSystem: "latn" };
const HOUR_MS = 36e5;
let clock;

const hostOf = ({ tickets }) => new URL(tickets.issuer).host;

const inMinutes = (moment) => new Intl.DateTimeFormat(locale(), MINUTE).format(moment);

/**
 * What a report that was agreed to waits for: its token, or a moment in its window; or one that is to be deleted; "" for any
 * other.
 */
export function howItLeaves({ state, channel, token, asked, due } = {}) {
  if (!/^(queued|withdrawn)$/.test(state) || !channel) return "";
  if (!due) return state === "queued" && channel.tickets && !token ? itsTokenFirst(channel) : "";
  const stratum = token ? countedAs(channel, asked) : "";
  return [whenItLeaves(state, channel, due), stratum].join(" ").trim();
}

const itsTokenFirst = (channel) =>
  say(
    "First this browser asks {issuer} for a token. It does so when {issuer} can be reached and gives one; you may close this page and come back.",
    { issuer: hostOf(channel) },
  );

function whenItLeaves(state, channel, due) {
  const width = channel.batches.hours * HOUR_MS;
  const from = Math.floor(due / width) * width;
  const facts = { from: inMinutes(from), until: inMinutes(from + width) };
  return state === "queued"
    ? say(
      "It leaves by itself at a moment drawn by chance between {from} and {until}, if this page is open then; otherwise when you open this page again after that moment.",
      facts,
    )
    : say(
      "The deletion is asked for at a moment drawn by chance between {from} and {until}, among what others send, so that it does not tell whose report it was: if this page is open then, otherwise when you open this page again after that moment.",
      facts,
    );
}

/** Of whom the issuer says that the person is: it alone knows, and only the person can tell that it is wrong. */
function countedAs(channel, asked) {
  const values = Object.entries(channel.tickets.keys[asked.place].public ?? {}).map(([field, value]) => `${field}: ${value}`);
  if (!values.length) return "";
  return say(
    "{issuer} says that you are of {values}, and that is read beside your report. If it is not so, withdraw it before it leaves.",
    { issuer: hostOf(channel), values: values.join(", ") },
  );
}

/** Why an issuer gave no token, of a reason as upload.js has it. */
export function whyNoToken(reason, channel) {
  const [, , status, problem = "–"] = reason.split(" ");
  const its = status ? say("HTTP status {status}, {problem}", { status, problem }) : say("it cannot be reached");
  return say("{issuer} gave no token: {reason}", { issuer: hostOf(channel), reason: its });
}

/** Do `work` once it is a moment, if this page is open then. */
export function whenDue(moment, work) {
  clearTimeout(clock);
  // From a while after, as a timer may be early; what is due already was tried when the page was opened.
  if (moment > Date.now()) clock = setTimeout(work, moment - Date.now() + 1000);
}
