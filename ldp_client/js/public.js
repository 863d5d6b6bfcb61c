/** Public fields: what a report says in clear beside its noisy answers. ldp_client/documents/public.py is its twin. */

import { fail } from "./errors.js";
import { parseDecimal } from "./rational.js";
import { bounds, check, decimal, hasOwn, identifier, isObject, listOf, oneOf, record, text } from "./shapes.js";
import { utf8 } from "./study.js";

const MOST_FIELDS = 16;
const MOST_CHOICES = 1000;
const MOST_VALUES = 1_000_000n;
const LARGEST = 10n ** 12n;
const PLACES = 9;
// All numbers are multiples of one billionth.
const UNIT = 10n ** BigInt(PLACES);

const OPTIONAL = { text: text(1000), source: oneOf("invitation") };
const CHOICE = record({ id: identifier, choices: listOf(text(200), 2, MOST_CHOICES) }, OPTIONAL);
const NUMBER = record({ id: identifier, bounds, step: decimal(([n]) => n > 0n) }, OPTIONAL);

/** A choice of labels, or a number on the grid low, low + step, …, high. */
function field(value, path) {
  if (!isObject(value) || !hasOwn(value, "bounds")) return choice(CHOICE(value, path));
  const found = NUMBER(value, path);
  const [low, high] = found.bounds.map((bound, index) => billionths(bound, `${path}.bounds[${index}]`));
  const step = billionths(found.step, `${path}.step`);
  check((high - low) % step === 0n && (high - low) / step < MOST_VALUES, `${path}.step`);
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
    const given = parseDecimal(String(answer));
    const place = given && (given[0] * UNIT) % given[1] === 0n ? (given[0] * UNIT) / given[1] : low - 1n;
    const isOnGrid = place >= low && place <= high && (place - low) % step === 0n;
    return isOnGrid ? spelled(place) : fail("answer", "grid", found.id);
  }
  // Of a number all its parts at their longest, whether or not one value has them all.
  const sizes = [low, high, step].map((one) => spelled(one).replace("-", "").split("."));
  const whole = Math.max(sizes[0][0].length, sizes[1][0].length);
  const decimals = Math.max(...[sizes[0], sizes[2]].map(([, digits]) => (digits ? digits.length + 1 : 0)));
  return { ...found, toSend, longest: 2 + (low < 0n) + whole + decimals };
}

function billionths([numerator, denominator], path) {
  const scaled = numerator * UNIT;
  const size = numerator < 0n ? -numerator : numerator;
  check(scaled % denominator === 0n && size <= LARGEST * denominator, path);
  return scaled / denominator;
}

/** The only spelling that reports have: no exponent, no needless zeros. */
function spelled(units) {
  const digits = String(units < 0n ? -units : units).padStart(PLACES + 1, "0");
  const text = `${digits.slice(0, -PLACES)}.${digits.slice(-PLACES)}`.replace(/\.?0+$/, "");
  return (units < 0n ? "-" : "") + text;
}

/** Bytes of a value in a report. */
const length = (value) => utf8(JSON.stringify(value)).length;

/**
 * Read a study's public fields, and give it `split`. Throws LdpkitError "study" where they are none, or one
 * has the name of what is protected.
 */
export function read(study) {
  study.public = listOf(field, 1, MOST_FIELDS, "id")(study.public, "public");
  const names = study.questions.flatMap(({ id, features, response }) => [
    id,
    ...[...(features ?? []), response ?? {}].map((part) => `${id}.${part.id}`),
  ]);
  study.public.forEach(({ id }, index) => check(!names.includes(id), `public[${index}].id`));
  study.split = (answers) => splitAnswers(study.public, answers);
}

/**
 * [answers to questions, {public: {id: value}} (or {} without values), spaces that hide the values' sizes]. What the invitation carries
 * may be left out. Throws LdpkitError "answer" for a value that is missing or not the field's.
 */
function splitAnswers(fields, answers) {
  if (!isObject(answers)) return [answers, {}, 0];
  const rest = { ...answers };
  const clear = {};
  let hidden = 0;
  for (const { id, source, toSend, longest } of fields) {
    if (!hasOwn(rest, id) && source) continue;
    if (!hasOwn(rest, id)) fail("answer", "missing", id);
    const value = toSend(rest[id]);
    clear.public = { ...clear.public, [id]: value };
    hidden += longest - length(value);
    delete rest[id];
  }
  return [rest, clear, hidden];
}
