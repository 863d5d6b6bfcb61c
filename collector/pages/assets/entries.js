/** What a person entered in the form: read, said back in words, and checked field by field, before any noise. */

import { locale, say, sentence, written, yesOrNo } from "./words.js";

/** What is wrong with an entry. */
export const PROBLEMS = {
  both: sentence("a number, and “prefer not to say”: leave one of them"),
  none_and_some: sentence("ticked boxes, and “none of these”: leave one of them"),
  missing: sentence("please answer this"),
  digits: sentence("write a number in digits, with nothing between them but one mark before a fraction"),
  two_readings: sentence("is {typed} the number {thousands}, or one with a fraction? Write it without the mark, or with a zero more at its end"),
  low: sentence("{typed} is below {limit}, the smallest number that counts here; if it is right, write {limit}"),
  high: sentence("{typed} is above {limit}, the largest number that counts here; if it is right, write {limit}"),
  whole: sentence("write a whole number"),
  grid: sentence("write a number within the bounds, and on the steps, that stand with it"),
};

// Zeros of digits that keyboards have beside 0: Arabic, Persian, Devanagari, full width.
const ZEROS = [0x660, 0x6f0, 0x966, 0xff10];
const DIGIT = /[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\uff10-\uff19]/g;
const NUMBER = /^([+-]?)(\d*)([.,]?)(\d*)$/;

/** A number as the page's language writes it, without marks between thousands. */
const exact = (number) => written(number, { useGrouping: false, maximumSignificantDigits: 15 });

/**
 * The number without the marks that the page's language has between thousands, where it has several of them, a
 * fraction behind, or a mark that nothing else is written with: all else may have two readings.
 */
function ungrouped(plain) {
  const parts = new Intl.NumberFormat(locale()).formatToParts(12345678.5);
  const mark = (type) => parts.find((part) => part.type === type).value;
  const [group, decimal] = [/\s/.test(mark("group")) ? "\\s" : `\\${mark("group")}`, `\\${mark("decimal")}`];
  // In India two digits stand between marks, but three at the end.
  const { length } = parts.filter((part) => part.type === "integer").at(-2).value;
  const grouped = new RegExp(`^[+-]?\\d{1,3}(${group}\\d{${length}})*${group}\\d{3}(${decimal}\\d+)?$`);
  const marks = plain.match(new RegExp(group, "g"))?.length;
  const isOneReading = /[.,]/.test(mark("group")) ? marks > 1 || new RegExp(decimal).test(plain) : marks;
  return isOneReading && grouped.test(plain) ? plain.replace(new RegExp(group, "g"), "") : plain;
}

/**
 * {number: its digits, with "." before a fraction} or {problem: key, facts}. "55,5" and "55.5" are the same; "1,234"
 * has two readings, also where one is out of bounds: who is beyond them may have meant that one.
 */
export function readNumber(typed, [low, high]) {
  const zero = (digit) => ZEROS.findLast((first) => first <= digit.codePointAt(0));
  const plain = typed
    .trim()
    .replace(/[\u200e\u200f\u061c]/g, "")
    .replace(DIGIT, (digit) => digit.codePointAt(0) - zero(digit))
    .replace("\u2212", "-")
    .replace(/\u066c(?=\d{3}(?!\d))/g, "")
    .replace("\u066b", ".");
  const [found, sign, whole, mark, rest] = NUMBER.exec(ungrouped(plain)) ?? [];
  if (!found || !(whole || rest)) return { problem: plain ? "digits" : "missing" };
  const fraction = `${sign}${whole || 0}${rest && "."}${rest}`;
  const thousands = `${sign}${whole}${rest}`;
  if (mark && /^[1-9]\d{0,2}$/.test(whole) && rest.length === 3) {
    return { problem: "two_readings", facts: { typed, thousands } };
  }
  if (Number(fraction) >= low && Number(fraction) <= high) return { number: fraction };
  const [problem, limit] = Number(fraction) < low ? ["low", low] : ["high", high];
  return { problem, facts: { typed, limit: exact(limit) } };
}

/**
 * Every field of the form, as {asked, name, answer, words, problem}: what it asks, its elements' name, what the device
 * is told, that in words, and the sentence that says what is wrong with it ("" where nothing is). `boxOf`, of the
 * boxes of a list: its title at the first one, and "" at the others, as one sentence is for all.
 */
export function entriesOf(form, study) {
  // A form's properties are its fields, by their names: a question may be called "elements".
  const entered = new FormData(form);
  const read = (name, asked, field) => ({ name, asked, ...entry(entered.getAll(name), field) });
  const listWith = (id) => study.sections?.find(({ any_of: isList, questions }) => isList && questions.includes(id));
  const private_ = study.questions.flatMap(({ id, text = id, features, response, ...one }) => {
    if (features)
      return [...features, response].map((part) => read(`${id}/${part.id}`, `${text}: ${part.text ?? part.id}`, part));
    const list = listWith(id);
    return [list ? { name: id, asked: below(list.title, text), ...boxed(id, list, entered) } : read(id, text, one)];
  });
  const inClear = (study.public ?? [])
    .filter(({ source }) => !source)
    .map((field) => read(field.id, field.text ?? field.id, field));
  return [...private_, ...inClear];
}

/** {question id: answer} from entries without a problem, and {public field id: value} beside. */
export function answersIn(entries, study) {
  const answers = new Map(entries.map(({ name, answer }) => [name, answer]));
  const records = study.questions.filter(({ features }) => features);
  for (const { id, features, response } of records) {
    const parts = [...features, response].map((part) => [part.id, `${id}/${part.id}`]);
    answers.set(id, Object.fromEntries(parts.map(([part, name]) => [part, answers.get(name)])));
    for (const [, name] of parts) answers.delete(name);
  }
  return Object.fromEntries(answers);
}

/** A box of a list is answered once any of it is ticked, or that none is. */
function boxed(id, { title, questions }, entered) {
  const isNone = entered.has(`none:${questions[0]}`);
  const isTicked = questions.some((one) => entered.has(one));
  const answer = entered.has(id) ? "yes" : "no";
  const problem = isTicked === isNone && say(isNone ? PROBLEMS.none_and_some : PROBLEMS.missing);
  return { answer, words: yesOrNo(answer === "yes"), problem: problem || "", boxOf: id === questions[0] ? title : "" };
}

/** What stands beside a box, behind the title of its list; `below` of ldp_client/documents/question.py is its twin. */
const below = (title, text) => `${title}${/[?:.!…؟？：。]$/.test(title) ? "" : ":"} ${text}`;

/** {answer, words, problem} of what was typed or picked; a public field's `toSend` has the last word. */
function entry(entered, field) {
  const typed = entered[0] ?? "";
  // Of a number the box behind it is ticked; of others it is what was picked.
  if (field.refusal && (entered[1] || (!field.bounds && typed === "refused"))) return refusal(field.bounds && typed);
  const { answer, words, problem, facts } = answered(typed, field);
  const { toSend } = field;
  // What stands in clear is not moved to the nearest end.
  const isOffGrid = toSend && facts?.limit;
  if (problem) return { problem: say(isOffGrid ? PROBLEMS.grid : PROBLEMS[problem], facts) };
  if (!toSend) return { answer, words, problem: "" };
  try {
    const sent = toSend(answer);
    return { answer: sent, words: say("{value} – sent as it is, in clear", { value: sent }), problem: "" };
  } catch (error) {
    return { problem: say(PROBLEMS[error.problem]) };
  }
}

/** null, unless a number stands beside it. */
function refusal(typed) {
  if (typed?.trim()) return { problem: say(PROBLEMS.both) };
  return { answer: null, words: say("prefer not to say"), problem: "" };
}

function answered(typed, { ask, bounds, choices, toSend, unit: measured = "" }) {
  if (bounds) return number(typed, bounds.map(([, , nearest]) => nearest), toSend, measured);
  if (choices && !Array.isArray(choices)) return whole(typed, choices.length);
  if (!typed) return { problem: "missing" };
  if (ask === "yes_no" || !choices) return { answer: typed, words: yesOrNo(typed === "yes") };
  // By its place: HTML changes some characters of a label, such as a carriage return.
  return { answer: choices[typed], words: choices[typed] };
}

/** What stands in clear goes to the device as it was written, so that no float comes between. */
function number(typed, limits, inClear, measured = "") {
  const { number: digits, problem, facts } = readNumber(typed, limits);
  if (problem) return { problem, facts };
  return { answer: inClear ? digits : Number(digits), words: `${exact(Number(digits))} ${measured}`.trim() };
}

function whole(typed, count) {
  const found = number(typed, [0, count - 1]);
  // A mark before three digits stands between thousands: few write a whole number with three zeros behind a point.
  if (found.problem === "two_readings") return whole(found.facts.thousands, count);
  return found.problem || Number.isInteger(found.answer) ? found : { problem: "whole" };
}
