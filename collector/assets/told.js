/** What this browser has told so far, from its own ledger alone: shown here, and sent to nobody. */

import { locale, say, written } from "./words.js";

const DAY = { dateStyle: "long", timeZone: "UTC" };

/** What is shown of a device's `told()`: for each study what it is called and what is said of it, and all in all. */
export function toldInWords({ studies, limit, ...all }) {
  if (!studies.length) return [[], say("script.told.none")];
  // The nearest number from above: it is a bound.
  const likely = Math.ceil(1000 / (1 + Math.exp(-all.epsilon))) / 1000;
  const facts = { epsilon: cost(all), limit: written(limit), likely: written(likely, PERCENT) };
  return [studies.map((one) => [one.title, linesOf(one)]), say("script.told.total", facts)];
}

const PERCENT = { style: "percent", maximumFractionDigits: 1 };

function linesOf({ owner, origin, days, questions, states, ...its }) {
  const whom = [owner, new URL(origin).host].filter(Boolean).join(", ");
  const shown = (day) => new Intl.DateTimeFormat(locale(), { ...DAY, numberingSystem: "latn" }).format(new Date(day));
  return [
    say("script.told.whom", { whom: apart(whom) }),
    days.length && say("script.told.days", { days: days.map(shown).join("; ") }),
    questions.length && say("script.told.asked", { questions: questions.map(apart).join("; ") }),
    say("script.told.cost", { epsilon: cost(its) }),
    ...(states[0] ? states : ["gone"]).map((state) => say(`script.told.${state}`)),
  ].filter(Boolean);
}

/** A text of another language, perhaps written the other way. */
const apart = (text) => `\u2068${text}\u2069`;

/** ε, and δ where there is one. */
const cost = ({ epsilon, delta }) => `${digits(epsilon)}${delta ? `, δ = ${delta}` : ""}`;

const digits = (number) => written(number, { maximumSignificantDigits: 4 });
