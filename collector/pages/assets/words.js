/** What the payloads of a report say, in the words that the page carries: one language's. */

import { mechanismFor } from "../../../js/index.js";
import { shownValue } from "./shown.js";

// By what a sampler says that its payloads are, else by the kind of question; what neither has is a code.
const READERS = { number, one: choice, some: choices, products, signs, record: entries };

export const locale = () => document.documentElement.lang;

/** A number as the page's language writes it, in the digits that its sentences have. */
export const written = (number, how) => number.toLocaleString(locale(), { numberingSystem: "latn", ...how });

/** Translations into the page's language by their English sentence, each in one form or by plural category. */
const translations = () => JSON.parse(document.getElementById("words").textContent);

/** Marks a sentence that is said elsewhere, for those who collect sentences to translate. */
export const sentence = (english) => english;

/** A sentence in the page's language, with its facts. */
export const say = (english, facts = {}) => filled(translations()[english] ?? english, facts);

/** A sentence in the form for the fact `count`; of English, both forms are here. */
export function sayCount(one, other, facts) {
  const forms = translations()[one] ?? { one, other };
  return filled(forms[new Intl.PluralRules(locale()).select(facts.count)] ?? forms.other, facts);
}

function filled(sentence, facts) {
  const shown = (fact) => (Number.isFinite(fact) ? written(fact) : fact);
  return sentence.replace(/\{(\w+)\}/g, (_, name) => shown(facts[name]));
}

/** [words, what the report says, a number's place] for each question, and for each value that stands in clear; own: the study itself. */
export function inWords(study, body, own) {
  const { payloads, public: values = {} } = JSON.parse(body);
  const answers = study.questions.map((question) => {
    // Every object has a "constructor", which a question may be called.
    const isDrawn = Object.hasOwn(payloads, question.id);
    const asked = question.text ?? question.id;
    if (!isDrawn) return [asked, say("not in the report: chance drew another question")];
    const bytes = Uint8Array.from(atob(payloads[question.id]), (letter) => letter.charCodeAt(0));
    return [asked, saidOf(question, bytes), question.ask === "number" ? placeOf(question, bytes) : undefined];
  });
  const inClear = Object.entries(values).map(([id, value]) => {
    const place = own.public.findIndex((field) => field.id === id);
    const field = study.public[place];
    return [field.text ?? id, say("{value} – sent as it is, in clear", { value: shownValue(value, field, own.public[place]) })];
  });
  return [...answers, ...inClear];
}

/** What a payload says of a question. */
export function saidOf(question, bytes) {
  return (READERS[mechanismFor(question).says ?? question.ask] ?? code)(question, bytes);
}

function number(question, bytes) {
  const number = inOwnUnits(question, bytes);
  return question.refusal ? toldOf(bytes[4], number) : number;
}

const toldOf = (isRefused, number) =>
  isRefused ? say("{number}, and that no number was said", { number }) : say("{number}, and that a number was said", { number });

function inOwnUnits(question, bytes) {
  const number = written(placeOf(question, bytes).value, { maximumSignificantDigits: 5 });
  return `${number} ${question.unit ?? ""}`.trim();
}

/** {low, high, value}: a question's bounds, and what a report says, in the question's unit. */
function placeOf(question, bytes) {
  const [low, high] = question.bounds.map(([, , nearest]) => nearest);
  const steps = new DataView(bytes.buffer).getInt32(0) / Number(mechanismFor(question).integers.levels);
  return { low, high, value: low + steps * (high - low) };
}

function choice({ ask, choices }, bytes) {
  const index = whole(bytes);
  if (choices[index] === null) return say("prefer not to say");
  if (ask === "yes_no") return yesOrNo(index);
  return Array.isArray(choices) ? choices[index] : String(index);
}

function choices(question, bytes) {
  const labels = Array.from(question.choices, (label, index) => label === null ? say(
    "prefer not to say",
  ) : (label ?? String(index)));
  const marked = labels.filter((_, index) => (bytes[index >> 3] >> (index & 7)) & 1);
  return marked.length ? say("marked: {choices}", { choices: marked.join("; ") }) : say("none marked");
}

function products(_, bytes) {
  return sayCount(
    "{count} number, a product of two entries plus noise",
    "{count} numbers, each a product of two entries plus noise",
    { count: bytes.length / 4 },
  );
}

/** The pattern of the signs of a block of products, the first one's in the highest bit. */
function signs(question, bytes) {
  const { blocks } = mechanismFor(question);
  const told = whole(bytes);
  const { length } = blocks[0].pairs;
  const factors = blocks[told >> length].pairs.map((pair, slot) =>
    factor(question, pair, (told >> (length - 1 - slot)) & 1),
  );
  if (length === 1) return say("a noisy {sign} for {fields}: one product, drawn by chance", factors[0]);
  const all = factors.map((facts) => say("{sign} for {fields}", facts));
  return say("noisy signs, of products drawn by chance: {signs}", { signs: all.join(", ") });
}

function factor({ entries, features, response }, pair, positive) {
  const names = (entries ?? [{}, ...features, response]).map(({ id, text = id }) => text);
  const fields = pair.slice(0, 2).filter((entry) => entry > 0).map((entry) => names[entry]);
  return { sign: positive ? "+" : "−", fields: fields.join(" × ") };
}

function whole(bytes) {
  return bytes.reduce((total, byte) => 256 * total + byte, 0);
}

function code(_, bytes) {
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return say("the code {code}, which stands for many choices", { code: digits });
}

function entries({ features, response }, bytes) {
  const names = [...features, ...(response.bounds ? [response] : [])].map(({ id, text = id }) => text);
  const numbers = say("a noisy number for each of {names}", { names: names.join(", ") });
  if (response.bounds) return numbers;
  return say(
    "{entries}; {name}: {answer}",
    { entries: numbers, name: response.text ?? response.id, answer: yesOrNo(bytes.at(-1)) },
  );
}

export function yesOrNo(answer) {
  return answer ? say("yes") : say("no");
}
