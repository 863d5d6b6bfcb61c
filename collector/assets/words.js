/** What the payloads of a report say, in the words that the page carries: one language's. */

import { mechanismFor } from "../../js/index.js";
import { shownValue } from "./shown.js";

// By what a sampler says that its payloads are, else by the kind of question; what neither has is a code.
const READERS = { number, one: choice, some: choices, products, signs, record: entries };

export const locale = () => document.documentElement.lang;

/** A number as the page's language writes it, in the digits that its sentences have. */
export const written = (number, how) => number.toLocaleString(locale(), { numberingSystem: "latn", ...how });

/** The sentence of this key, in the form for the fact `count` where it has several, with its facts. */
export function say(key, facts = {}) {
  const found = JSON.parse(document.getElementById("words").textContent)[key];
  const sentence = found[new Intl.PluralRules(locale()).select(facts.count)] ?? found;
  const shown = (fact) => (Number.isFinite(fact) ? written(fact) : fact);
  return sentence.replace(/\{(\w+)\}/g, (_, name) => shown(facts[name]));
}

/** [words, what the report says] for each question, and for each value that stands in clear; own: the study itself. */
export function inWords(study, body, own) {
  const { payloads, public: values = {} } = JSON.parse(body);
  const answers = study.questions.map((question) => {
    // Every object has a "constructor", which a question may be called.
    const isDrawn = Object.hasOwn(payloads, question.id);
    const words = isDrawn ? said(question, payloads[question.id]) : say("script.not_drawn");
    return [question.text ?? question.id, words];
  });
  const inClear = Object.entries(values).map(([id, value]) => {
    const place = own.public.findIndex((field) => field.id === id);
    const field = study.public[place];
    return [field.text ?? id, say("script.public", { value: shownValue(value, field, own.public[place]) })];
  });
  return [...answers, ...inClear];
}

const said = (question, payload) => saidOf(question, Uint8Array.from(atob(payload), (letter) => letter.charCodeAt(0)));

/** What a payload says of a question. */
export function saidOf(question, bytes) {
  return (READERS[mechanismFor(question).says ?? question.ask] ?? code)(question, bytes);
}

function number(question, bytes) {
  const number = inOwnUnits(question, bytes);
  return question.refusal ? say(bytes[4] ? "script.told_refused" : "script.told_said", { number }) : number;
}

function inOwnUnits(question, bytes) {
  const [low, high] = question.bounds.map(([, , nearest]) => nearest);
  const steps = new DataView(bytes.buffer).getInt32(0) / Number(mechanismFor(question).integers.levels);
  return written(low + steps * (high - low), { maximumSignificantDigits: 5 });
}

function choice({ ask, choices }, bytes) {
  const index = whole(bytes);
  if (choices[index] === null) return say("script.refused");
  if (ask === "yes_no") return yesOrNo(index);
  return Array.isArray(choices) ? choices[index] : String(index);
}

function choices(question, bytes) {
  const labels = Array.from(question.choices, (label, index) => label === null ? say("script.refused") : (label ?? String(index)));
  const marked = labels.filter((_, index) => (bytes[index >> 3] >> (index & 7)) & 1);
  return marked.length ? say("script.marked", { choices: marked.join("; ") }) : say("script.none_marked");
}

function products(_, bytes) {
  return say("script.products", { count: bytes.length / 4 });
}

/** The pattern of the signs of a block of products, the first one's in the highest bit. */
function signs(question, bytes) {
  const { blocks } = mechanismFor(question);
  const told = whole(bytes);
  const { length } = blocks[0].pairs;
  const factors = blocks[told >> length].pairs.map((pair, slot) =>
    factor(question, pair, (told >> (length - 1 - slot)) & 1),
  );
  if (length === 1) return say("script.product", factors[0]);
  return say("script.signs", { signs: factors.map((facts) => say("script.sign", facts)).join(", ") });
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
  return say("script.code", { code: digits });
}

function entries({ features, response }, bytes) {
  const names = [...features, ...(response.bounds ? [response] : [])].map(({ id, text = id }) => text);
  const numbers = say("script.entries", { names: names.join(", ") });
  if (response.bounds) return numbers;
  return say("script.response", { entries: numbers, name: response.text ?? response.id, answer: yesOrNo(bytes.at(-1)) });
}

function yesOrNo(answer) {
  return say(answer ? "script.yes" : "script.no");
}
