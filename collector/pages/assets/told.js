/** What this browser has told so far, from its own ledger alone: shown here, and sent to nobody. */

import { locale, say, sentence, written } from "./words.js";

// What became of a report.
const STATES = {
  held: sentence("the report waits for your consent"),
  queued: sentence("the report waits to be sent"),
  ticketless: sentence("the report waits for a ticket"),
  sent: sentence("the report was sent"),
  refused: sentence("the collector refused the report"),
  withdrawn: sentence("withdrawn; the collector has not confirmed yet that it deleted the report"),
  gone: sentence("no report is left"),
};
const DAY = { dateStyle: "long", timeZone: "UTC" };

/** What is shown of a device's `told()`: for each study what it is called and what is said of it, and all in all. */
export function toldInWords({ studies, limit, ...all }) {
  if (!studies.length) return [[], say("Nothing yet.")];
  // The nearest number from above: it is a bound.
  const likely = Math.ceil(1000 / (1 + Math.exp(-all.epsilon))) / 1000;
  const facts = { epsilon: cost(all), limit: written(limit), likely: written(likely, PERCENT) };
  const total = say(
    "In all: ε = {epsilon} of the {limit} that this browser may tell the studies of this site. Whoever thought two of your possible answers equally likely can be at most {likely} sure of one of them after seeing all of these reports.",
    facts,
  );
  return [studies.map((one) => [one.title, linesOf(one)]), total];
}

const PERCENT = { style: "percent", maximumFractionDigits: 1 };

function linesOf({ owner, origin, days, questions, states, ...its }) {
  const whom = [owner, new URL(origin).host].filter(Boolean).join(", ");
  const shown = (day) => new Intl.DateTimeFormat(locale(), { ...DAY, numberingSystem: "latn" }).format(new Date(day));
  return [
    say("told to: {whom}", { whom: apart(whom) }),
    days.length && say("answered on: {days}", { days: days.map(shown).join("; ") }),
    questions.length && say("asked: {questions}", { questions: questions.map(apart).join("; ") }),
    say("cost: ε = {epsilon}", { epsilon: cost(its) }),
    ...(states[0] ? states : ["gone"]).map((state) => say(STATES[state])),
  ].filter(Boolean);
}

/** A text of another language, perhaps written the other way. */
const apart = (text) => `\u2068${text}\u2069`;

/** ε, and δ where there is one. */
const cost = ({ epsilon, delta }) => `${digits(epsilon)}${delta ? `, δ = ${delta}` : ""}`;

const digits = (number) => written(number, { maximumSignificantDigits: 4 });
