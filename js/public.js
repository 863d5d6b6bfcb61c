/** Public fields: what a report says in clear beside its noisy answers. ldp_client/documents/public.py is its twin. */

import { utf8 } from "./digest.js";
import { fail } from "./errors.js";
import { parseDecimal } from "./rational.js";
import { bounds, check, decimal, hasOwn, identifier, isObject, listOf, oneOf, record, text } from "./shapes.js";

const PLACES = 9;
// All numbers are multiples of one billionth.
const UNIT = 10n ** 9n;

const OPTIONAL = { text: text(1000), source: oneOf("invitation") };
const CHOICE = record({ id: identifier, choices: listOf(text(200), 2, 1000) }, OPTIONAL);
const NUMBER = record({ id: identifier, bounds, step: decimal(([n]) => n > 0n) }, OPTIONAL);

/** A choice of labels, or a number on the grid low, low + step, …, high. */
function field(value, path) {
  if (value?.bounds === undefined) return choice(CHOICE(value, path));
  const found = NUMBER(value, path);
  const [low, high] = found.bounds.map((bound, index) => billionths(bound, `${path}.bounds[${index}]`));
  const step = billionths(found.step, `${path}.step`);
  // At most a million values.
  check(!((high - low) % step) && (high - low) / step < 10n ** 6n, `${path}.step`);
  return number(found, low, high, step);
}

/** toSend: from an answer to what is sent; longest: the most bytes that it takes. */
function choice(found) {
  const toSend = (answer) =>
    found.choices.includes(answer) ? answer : fail("answer", "choice", found.id);
  return { ...found, toSend, longest: Math.max(...found.choices.map(length)) };
}

function number(found, low, high, step) {
  function toSend(answer) {
    // What can be popped is a list; one of one number reads like it.
    const [numerator, denominator] = parseDecimal(answer?.pop || String(answer)) ?? [low - step, UNIT];
    const above = numerator * UNIT - low * denominator;
    const width = step * denominator;
    const nearest = low + ((above + width / 2n) / width) * step;
    // A float is hardly ever on a grid of decimals: so small a part of a step is its error.
    const tolerance = typeof answer === "number" && answer % 1 ? width / 1000n : 0n;
    const isOnGrid = size(numerator * UNIT - nearest * denominator) <= tolerance;
    return isOnGrid && nearest >= low && nearest <= high ? spelled(nearest) : fail("answer", "grid", found.id);
  }
  // Of a number all its parts at their longest, whether or not one value has them all.
  const [ofLow, ofHigh, ofStep] = [low, high, step].map((one) => spelled(size(one)).split("."));
  const whole = Math.max(ofLow[0].length, ofHigh[0].length);
  const decimals = Math.max(...[ofLow, ofStep].map(([, digits]) => (digits ? digits.length + 1 : 0)));
  return { ...found, toSend, longest: 2 + (low < 0n) + whole + decimals };
}

function billionths([numerator, denominator], path) {
  const scaled = numerator * UNIT;
  // The largest is 10**12.
  check(!(scaled % denominator) && size(numerator) <= 1000n * UNIT * denominator, path);
  return scaled / denominator;
}

/** The only spelling that reports have: no exponent, no needless zeros. */
function spelled(units) {
  const digits = String(size(units)).padStart(PLACES + 1, "0");
  const text = `${digits.slice(0, -PLACES)}.${digits.slice(-PLACES)}`.replace(/\.?0+$/, "");
  return units < 0n ? `-${text}` : text;
}

const size = (number) => (number < 0n ? -number : number);

/** Bytes of a value in a report. */
const length = (value) => utf8(JSON.stringify(value)).length;

/**
 * Read a study's public fields, and give it `split`. Throws LdpkitError "study" where they are none, or one
 * has the name of what is protected.
 */
export function read(study) {
  const mostFields = 16;
  study.public = listOf(field, 1, mostFields, "id")(study.public, "public");
  const names = study.questions.flatMap(({ id, features, response }) => [
    id,
    ...[...(features ?? []), response ?? {}].map((part) => `${id}.${part.id}`),
  ]);
  study.public.forEach(({ id }, index) => check(!names.includes(id), `public[${index}].id`));
  study.split = (answers) => splitAnswers(study.public, answers);
  const ids = study.public.map(({ id }) => id);
  // Whether this device was asked a question of a field's id behind noise.
  study.wasAsked = (rows) => rows.some(({ question }) => ids.includes(question));
}

/**
 * [answers to questions, {public: {id: value}} (or {} without values), spaces that hide the values' sizes]. What the invitation carries
 * may be left out. Throws LdpkitError "answer" for a value that is missing or not the field's.
 */
function splitAnswers(fields, answers) {
  if (!isObject(answers)) return [answers];
  const rest = { ...answers };
  const clear = {};
  let hidden = 0;
  for (const { id, source, toSend, longest } of fields) {
    if (hasOwn(rest, id)) {
      const value = toSend(rest[id]);
      (clear.public ??= {})[id] = value;
      hidden += longest - length(value);
      delete rest[id];
    } else if (!source) fail("answer", "missing", id);
  }
  return [rest, clear, hidden];
}
