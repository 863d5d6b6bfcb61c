/** What few studies state: who asks, the open days, sections, one question each, public fields, and the channel. */

import { originOf } from "./address.js";
import { utf8 } from "./encoding.js";
import { fail } from "./errors.js";
import { abs, isBelow, parseDecimal } from "./integers.js";
import { uniformBelow } from "./randomness.js";
import * as shapes from "./shapes.js";

const { check, hasOwn, identifier, isObject, isText, listOf, matching, oneOf, plain, record, text, whole } = shapes;

const CONTACT = /^(?!.{201})(https:\/\/[A-Za-z\d][-\w.+~:/?#[\]!$&'()*,;=%]*|[-\w.+]+@[-\w+]+(\.[-\w+]+)+)$/;

const day = plain((value) => {
  const midnight = `${value}T00:00:00.000Z`;
  // No date of what is not a day: toJSON gives null.
  return isText(value) && value > "0001" && new Date(midnight).toJSON() === midnight;
});

/** One line: nothing that breaks it, nor turns the direction of what follows. */
const line = (longest) => (value, path) => {
  check(!/[\p{Cc}\u2028-\u202e\u2066-\u2069]/u.test(text(longest)(value, path)), path);
  return value;
};

const ids = listOf(identifier, 1, 100);
const section = record({ title: text(200), questions: ids }, { any_of: oneOf(true, false) });

const PLACES = 9;
// All numbers are multiples of one billionth.
const UNIT = 10n ** 9n;

const MORE = { text: text(1000), source: oneOf("ticket") };
const CHOICE = record({ id: identifier, choices: listOf(text(200), 2, 1000) }, MORE);
const NUMBER = record({ id: identifier, bounds: shapes.bounds, step: shapes.decimal(([n]) => n > 0n) }, MORE);

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

// Of this machine itself.
const HERE = /^https?:..(localhost|127\.0\.0\.1|\[::1])(?![^:/])/;

// At most 500 characters, in the one spelling that is compared.
const issuer = matching(/^(?!.{501})https?:\/\/([a-z\d-]+\.)*[a-z\d-]+(:\d{1,5})?(\/[!"$->@-~]*)?$/);

// RSASSA-PSS with SHA-384, MGF1 of SHA-384 and a salt of 48 bytes, as RFC 9578, section 6.5, has it, in base64; behind
// it an odd modulus of 2048 bits, then 65537.
const ALGORITHM =
  "MIIBUjA9BgkqhkiG9w0BAQowMKANMAsGCWCGSAFlAwQCAqEaMBgGCSqGSIb3DQEBCDALBglghkgBZQMEAgKiAwIBMA" +
  "OCAQ8AMIIBCgKCAQEA";
const key = matching(new RegExp(`^${ALGORITHM}[g-z\\d+/][A-Za-z\\d+/]{340}[Qw]IDAQAB$`));

const values = plain((value) => {
  const { length } = isObject(value) ? Object.keys(value) : [];
  return length > 0 && length <= 16;
});

const keys = listOf(record({ key }, { public: values }), 1, 64, "key");
const batches = record({ hours: whole(1, 168) });

const SHAPES = {
  sample_one_question: oneOf(true, false),
  opens: day,
  closes: day,
  owner: line(200),
  contact: matching(CONTACT),
  ethics: line(1000),
  consent: text(2000),
  retention: record({ days: whole(1, 36500) }),
  sections: listOf(section, 1, 100, "title"),
  public: listOf(field, 1, 16, "id"),
  channel: record({ batches }, { tickets: record({ issuer, keys }) }),
};

/** Read these parts. Adds `refuseToday`; `one` if it asks one question; `split` and `wasAsked` for public fields. */
export function read(study) {
  for (const key in SHAPES) if (key in study) study[key] = SHAPES[key](study[key], key);
  check(!(study.opens > study.closes), "closes");
  if (study.sections) checkSections(study);
  const fields = study.public;
  if (fields) {
    checkNames(study);
    study.split = (answers) => splitAnswers(fields, answers);
    // Whether this device was asked a question of a field's id behind noise.
    study.wasAsked = (rows) => rows.some(({ question }) => fields.some(({ id }) => id === question));
  }
  checkStrata(study);
  study.refuseToday = (...request) => refuseToday(study, ...request);
  // What its device, cost and reports do otherwise.
  if (study.sample_one_question) study.one = { place, draw, dearer, paid, pick };
}

/** Throw "closed" or "study" for what a device cannot answer today, to that collector by that transport. */
function refuseToday({ opens, closes, channel }, collector, transport) {
  // By the person's day. West of the study's author the first one comes later; a device that is early does no harm.
  const here = Date.now() - 6e4 * new Date().getTimezoneOffset();
  const day = (shift) => new Date(here + shift * 864e5).toISOString().slice(0, 10);
  // A comparison with an end that the study does not have is false.
  if (day(1) < opens) fail("closed", `opens on ${opens}`);
  if (day(0) > closes) fail("closed", `closed on ${closes}`);
  if (!channel?.tickets) return;
  const { issuer } = channel.tickets;
  // Left from a trial: no report would ever leave, and whoever listens here would get the ticket.
  check(!HERE.test(issuer) || HERE.test(collector), "channel");
  check(!transport.relay, "channel.tickets");
  // One operator of both could join the person who got a token and the report that came with it.
  check(originOf(issuer) !== originOf(collector), "channel.tickets.issuer");
}

/** Each public field has another name than what is protected. */
function checkNames(study) {
  const names = study.questions.flatMap(({ id, features = [], response = [] }) => [
    id,
    ...features.concat(response).map((part) => `${id}.${part.id}`),
  ]);
  study.public.forEach(({ id }, index) => check(!names.includes(id), `public[${index}].id`));
}

/** Each key of an issuer stands for other values of the public fields that tickets carry. */
function checkStrata({ public: fields = [], channel }) {
  const carried = fields.filter(({ source }) => source);
  const strata = [];
  channel?.tickets?.keys.forEach(({ public: given = {} }, index) => {
    const path = `channel.tickets.keys[${index}].public`;
    for (const name in given) {
      check(isSpelled(carried.find(({ id }) => id === name), given[name]), `${path}.${name}`);
    }
    for (const { id } of carried) check(hasOwn(given, id), `${path}.${id}`);
    const stratum = JSON.stringify(carried.map(({ id }) => given[id]));
    check(!strata.includes(stratum), path);
    strata.push(stratum);
  });
}

/** Whether it is a field's value, as a report spells it. */
function isSpelled(field, value) {
  try {
    return field.toSend(value) === value;
  } catch {
    return false;
  }
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

/** Each question stands in one section. */
function checkSections({ questions, sections, sample_one_question: isOne }) {
  check(!isOne, "sections");
  const left = new Map(questions.map((asked) => [asked.id, asked]));
  for (const [index, { questions: ids, any_of: isList }] of sections.entries()) {
    for (const [place, id] of ids.entries()) {
      const asked = left.get(id);
      // What is asked again and again keeps a noisy answer `of` a mechanism.
      const isBox = asked?.ask === "yes_no" && !asked.refusal && !asked.mechanism.of;
      check(left.delete(id) && (!isList || isBox), `sections[${index}].questions[${place}]`);
    }
  }
  check(!left.size, "sections");
}

/** The place of the question that was drawn for this very document; -1 for none. */
function place({ digest, questions }, { drawn }) {
  const row = drawn.find((row) => row.digest === digest);
  return questions.findIndex(({ id }) => id === row?.question);
}

/** Draws that question, unless one is drawn, and has the ledger remember it: its place. */
function draw(study, memory, random) {
  const known = place(study, memory);
  if (known >= 0) return known;
  const { digest, questions } = study;
  const drawn = uniformBelow(questions.length, random);
  memory.drawn.push({ digest, question: questions[drawn].id });
  return drawn;
}

/** The larger of two costs: any question may be drawn. */
const dearer = (cost, other) => (isBelow(cost, other) ? other : cost);

/** What is paid for with a question: all of which one is drawn, but each version may draw another memoized one. */
function paid(recalled, item) {
  // A memoized mechanism alone is `of` another.
  const once = recalled.filter(({ asked }) => !asked.mechanism.of);
  return once.includes(item) ? once : [item];
}

/** Return [the question that is sent], of [id, draw, size] each, and spaces that hide which it is. */
function pick(ready, place, random) {
  const drawn = ready[place < 0 ? uniformBelow(ready.length, random) : place];
  return [[drawn], Math.max(...ready.map(([, , size]) => size)) - drawn[2]];
}
