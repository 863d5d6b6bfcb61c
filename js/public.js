/** Public fields: what a report says in clear beside its noisy answers. ldp_client/documents/public.py is its twin. */

import { utf8 } from "./encoding.js";
import { fail } from "./errors.js";
import { abs } from "./integers.js";
import { parseDecimal } from "./rational.js";
import { bounds, check, decimal, hasOwn, identifier, isObject, listOf, oneOf, record, text } from "./shapes.js";

const PLACES = 9;
// All numbers are multiples of one billionth.
const UNIT = 10n ** 9n;
const MOST_FIELDS = 16;

const OPTIONAL = { text: text(1000), source: oneOf("ticket") };
const CHOICE = record({ id: identifier, choices: listOf(text(200), 2, 1000) }, OPTIONAL);
const NUMBER = record({ id: identifier, bounds, step: decimal(([n]) => n > 0n) }, OPTIONAL);

/** Bytes of a value in a report. */
const length = (value) => utf8(JSON.stringify(value)).length;

/** Return a field with toSend, from an answer to what is sent, and longest, the most bytes of that. */
function field(value, path) {
  if (value?.bounds !== undefined) return number(NUMBER(value, path), path);
  const { id, choices, ...more } = CHOICE(value, path);
  const toSend = (answer) => (choices.includes(answer) ? answer : fail("answer", "choice", id));
  return { id, choices, ...more, toSend, longest: Math.max(...choices.map(length)) };
}

/** A number on the grid low, low + step, …, high. */
function number(stated, path) {
  const [low, high] = stated.bounds.map((bound, index) => billionths(bound, `${path}.bounds[${index}]`));
  const step = billionths(stated.step, `${path}.step`);
  // At most a million values.
  check(!((high - low) % step) && (high - low) / step < 10n ** 6n, `${path}.step`);

  function toSend(answer) {
    // What can be popped is a list; one of one number reads like it.
    const [numerator, denominator] = parseDecimal(answer?.pop || String(answer)) ?? [low - step, UNIT];
    const above = numerator * UNIT - low * denominator;
    const width = step * denominator;
    const nearest = low + ((above + width / 2n) / width) * step;
    // A float is hardly ever on a grid of decimals: so small a part of a step is its error.
    const tolerance = typeof answer === "number" && answer % 1 ? width / 1000n : 0n;
    const isOnGrid = abs(numerator * UNIT - nearest * denominator) <= tolerance;
    return isOnGrid && nearest >= low && nearest <= high ? spelled(nearest) : fail("answer", "grid", stated.id);
  }
  // Of a number all its parts at their longest, whether or not one value has them all.
  const [ofLow, ofHigh, ofStep] = [low, high, step].map((value) => spelled(abs(value)).split("."));
  const whole = Math.max(ofLow[0].length, ofHigh[0].length);
  const decimals = Math.max(...[ofLow, ofStep].map(([, digits]) => (digits ? digits.length + 1 : 0)));
  return { ...stated, toSend, longest: 2 + (low < 0n) + whole + decimals };
}

function billionths([numerator, denominator], path) {
  const scaled = numerator * UNIT;
  // The largest is 10**12.
  check(!(scaled % denominator) && abs(numerator) <= 1000n * UNIT * denominator, path);
  return scaled / denominator;
}

/** The only spelling that reports have: no exponent, no needless zeros. */
function spelled(units) {
  const digits = String(abs(units)).padStart(PLACES + 1, "0");
  const text = `${digits.slice(0, -PLACES)}.${digits.slice(-PLACES)}`.replace(/\.?0+$/, "");
  return units < 0n ? `-${text}` : text;
}

/** Read a study's public fields, of other names than what is protected. Adds `split` and `wasAsked`. */
export function read(study) {
  const fields = listOf(field, 1, MOST_FIELDS, "id")(study.public, "public");
  const names = study.questions.flatMap(({ id, features = [], response = [] }) => [
    id,
    ...features.concat(response).map((part) => `${id}.${part.id}`),
  ]);
  fields.forEach(({ id }, index) => check(!names.includes(id), `public[${index}].id`));
  study.public = fields;
  study.split = (answers) => splitAnswers(fields, answers);
  // Whether this device was asked a question of a field's id behind noise.
  study.wasAsked = (rows) => rows.some(({ question }) => fields.some(({ id }) => id === question));
}

/** Return [answers to questions, {public: {id: value}} or {}, spaces that hide the values' sizes]. */
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
