/** The modules of the participant's page: what they read, say and tell others. A browser sees the rest. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { mechanismFor } from "../../js/index.js";
import { CHOICE, MEMOIZED, NUMBER, RECORD, YES_NO, channelOf, device, read, seeded, study } from "./support.mjs";

// Without translations all is said in English.
const html = { lang: "en" };
globalThis.document = { documentElement: html, getElementById: () => ({ textContent: "{}" }) };
// A form's fields, by their names.
globalThis.FormData = class {
  constructor(fields) {
    this.fields = fields;
  }
  getAll = (name) => this.fields[name] ?? [];
  has = (name) => name in this.fields;
};
const from = (name) => import(new URL(`../../collector/pages/assets/${name}.js`, import.meta.url));
const { PROBLEMS, answersIn, entriesOf, readNumber } = await from("entries");
const { inWords, say } = await from("words");
const { inOwnLabels, shownIn } = await from("shown");
const { howItLeaves, whyNoToken } = await from("leaves");
const { toldInWords } = await from("told");

// What is typed in each language, and what the page takes it for.
const TYPED = {
  en: {
    "55,5": "55.5", " +7 ": "+7", "\u22123": "-3", ",5": "0.5", "0,125": "0.125", "\u0664\u066b\u0662": "4.2", "\u096f\u0966": "90",
    1234: "1234", "1,2340": "1.2340", "1,234.5": "1234.5", "": "missing", "1,234": "two_readings", "1.234": "two_readings",
    "9,876": "two_readings", "1.234,5": "digits", "1 234": "digits", "1e3": "digits", twelve: "digits", ".": "digits",
    5001: "high", "-10,5": "low", "1,234,567": "high",
  },
  de: { "1.234,5": "1234.5", "-3,25": "-3.25", "1.234": "two_readings", "1,234.5": "digits", "1.23.456": "digits" },
  ar: { "\u0661\u066c\u0662\u0663\u0664\u066b\u0665": "1234.5", "1,234.5": "1234.5", "1,234": "two_readings" },
};

test("numbers are read as people of a language write them or not at all", () => {
  for (const [language, cases] of Object.entries(TYPED)) {
    html.lang = language;
    for (const [typed, expected] of Object.entries(cases)) {
      const { number, problem } = readNumber(typed, [-10, 5000]);
      assert.equal(number ?? problem, expected, `${language} ${typed}`);
    }
  }
  html.lang = "en";
});

/** Of each entry [what is said back, or the problem]. */
const said = (fields, asked) => entriesOf(fields, asked).map(({ words: understood, problem }) => problem || understood);

test("entries are repeated in words and each problem is named", async () => {
  const refusable = { ...NUMBER, id: "salary", unit: "euros", refusal: { share: "0.5" } };
  const count = { ...CHOICE, id: "town", choices: { count: 2000 }, mechanism: { name: "olh", epsilon: "1" } };
  const weight = { id: "weight", bounds: ["40", "140.5"], step: "0.5" };
  const asked = await read(study([NUMBER, YES_NO, CHOICE, count, refusable], { public: [weight] }));
  const good = { hours: ["3.5"], ever: ["no"], occupation: ["1"], town: ["1,000"], salary: ["7,5"], weight: ["70.50"] };
  assert.deepEqual(said(good, asked), ["3.5", "no", "worker", "1000", "7.5 euros", "70.5 – sent as it is, in clear"]);
  const answers = answersIn(entriesOf(good, asked), asked);
  assert.deepEqual(answers, { hours: 3.5, ever: "no", occupation: "worker", town: 1000, salary: 7.5, weight: "70.5" });
  const wrong = { hours: ["12.5"], ever: [], occupation: [""], town: ["3,000"], salary: ["3", "refused"], weight: ["70.25"] };
  assert.deepEqual(said(wrong, asked), [
    say(PROBLEMS.high, { typed: "12.5", limit: "12" }), ...Array(2).fill(say(PROBLEMS.missing)),
    say(PROBLEMS.high, { typed: "3000", limit: "1999" }), say(PROBLEMS.both), say(PROBLEMS.grid),
  ]);
  const refused = entriesOf({ ...good, salary: ["", "refused"] }, asked)[4];
  assert.deepEqual([refused.answer, refused.words], [null, "prefer not to say"]);
  for (const weigh of ["39.5", "141"]) assert.equal(said({ ...good, weight: [weigh] }, asked)[5], say(PROBLEMS.grid));
  assert.equal(said({ ...good, town: ["1.5"] }, asked)[3], say(PROBLEMS.whole));
});

// attack 2: A study has choices that a form cannot hold, so that a missing report tells who would choose them.
test("a choice is known by its place whatever its label", async () => {
  // HTML turns a carriage return into a line feed, and the last two look alike.
  const choices = ["no", "yes, \rsince", "yes, \r\nsince", "yes\x7f", "perhaps", "perhaps "];
  const asked = await read(study({ ...CHOICE, choices, refusal: true }, { public: [{ id: "region", choices }] }));
  for (const place of choices.keys()) {
    const fields = { occupation: [String(place)], region: [String(place)] };
    assert.deepEqual(answersIn(entriesOf(fields, asked), asked), { occupation: choices[place], region: choices[place] });
  }
  assert.equal(entriesOf({ occupation: ["refused"], region: ["0"] }, asked)[0].answer, null);
});

test("a list of boxes needs a tick or none of these", async () => {
  const boxes = [{ ...YES_NO, id: "asa", text: "Aspirin" }, { ...YES_NO, id: "ibu", text: "Ibuprofen" }];
  const sections = [{ title: "Which do you take?", questions: ["asa", "ibu"], any_of: true }];
  const asked = await read(study(boxes, { sections }));
  const found = (fields) => entriesOf(fields, asked).map(({ answer, problem }) => (problem ? "" : answer));
  assert.deepEqual(found({}), ["", ""]);
  assert.deepEqual(found({ ibu: ["on"] }), ["no", "yes"]);
  assert.deepEqual(found({ "none:asa": ["on"] }), ["no", "no"]);
  assert.deepEqual(found({ ibu: ["on"], "none:asa": ["on"] }), ["", ""]);
  const [first, second] = entriesOf({}, asked);
  assert.deepEqual([first.asked, first.boxOf, second.boxOf], ["Which do you take? Aspirin", "Which do you take?", ""]);
});

test("a record is answered field by field", async () => {
  const asked = await read(study({ ...RECORD, text: "Your job", features: [{ ...RECORD.features[0], text: "Age", unit: "years" }] }));
  const entries = entriesOf({ "rating/age": ["30"], "rating/rate": ["4"] }, asked);
  assert.deepEqual(entries.map(({ asked: its, words: understood }) => [its, understood]), [["Your job: Age", "30 years"], ["Your job: rate", "4"]]);
  assert.deepEqual(answersIn(entries, asked), { rating: { age: 30, rate: 4 } });
});

const count = { count: 2000 };
const products = { name: "sampled_products", epsilon: "1" };
const salary = { ...RECORD, id: "salary", norm: undefined, mechanism: products };
// What a report says, whatever the noise is.
const SAID = [
  [NUMBER, 3, /^-?[\d.,]+$/],
  [{ ...NUMBER, mechanism: { name: "gaussian", epsilon: "1", delta: "1e-6" } }, 3, /^-?[\d.,]+$/],
  [{ ...NUMBER, refusal: { share: "0.5" } }, null, /^-?[\d.,]+, and that (a|no) number was said$/],
  [CHOICE, "worker", /^(marked: (student|worker|teacher)(; (student|worker|teacher))*|none marked)$/],
  [YES_NO, "yes", /^(yes|no)$/],
  [{ ...YES_NO, refusal: true }, null, /^(yes|no|prefer not to say)$/],
  [{ ...CHOICE, choices: count, mechanism: { name: "olh", epsilon: "1" } }, 5, /^the code [0-9a-f]+, which stands for many choices$/],
  [{ ...MEMOIZED, mechanism: { ...MEMOIZED.mechanism, of: "randomized_response" } }, "worker", /^(student|worker|teacher)$/],
  [RECORD, { age: 30, rate: 4 }, /^\d+ numbers, each a product of two entries plus noise$/],
  [{ ...RECORD, mechanism: { name: "gaussian_record", epsilon: "1", delta: "1e-6", response_share: "0.25" } }, { age: 30, rate: 4 }, /^a noisy number for each of age, rate$/],
  [salary, { age: 30, rate: 4 }, /^a noisy [+−] for .*: one product, drawn by chance$/],
  [{ ...salary, mechanism: { ...products, products: 2 } }, { age: 30, rate: 4 }, /^noisy signs, of products drawn by chance: /],
];

test("a report is said in words by the kind of its payload", async () => {
  const random = seeded(1);
  for (const [question, answer, expected] of SAID) {
    const asked = await read(study(question));
    const payload = Buffer.from(mechanismFor(asked.questions[0]).perturb(answer, random)).toString("base64");
    const [[name, words_]] = inWords(asked, JSON.stringify({ payloads: { [question.id]: payload } }), asked);
    assert.equal(name, question.id);
    assert.match(words_, expected);
  }
  // Payloads that say exactly one thing.
  const whole = await read(study([YES_NO, CHOICE, { ...YES_NO, id: "constructor" }]));
  const body = JSON.stringify({ payloads: { ever: "AQ==", occupation: "Bg==" } });
  assert.deepEqual(inWords(whole, body, whole).map(([, one]) => one), ["yes", "marked: worker; teacher", "not in the report: chance drew another question"]);
});

test("a translated study is shown in one language and answered in its own", async () => {
  const label = (en, de) => ({ en, de });
  const choices = [label("north", "Norden"), label("south", "Süden")];
  const question = { ...CHOICE, choices: [label("student", "Studentin"), label("worker", "Arbeiter")] };
  const asked = await read(study(question, { languages: ["en", "de"], public: [{ id: "region", text: label("Where?", "Wo?"), choices }] }));
  const shown = await shownIn(asked, "de");
  const entries = entriesOf({ occupation: ["1"], region: ["0"] }, shown);
  assert.deepEqual(entries.map(({ words: understood }) => understood), ["Arbeiter", "Norden – sent as it is, in clear"]);
  const answers = inOwnLabels(answersIn(entries, shown), shown, asked);
  assert.deepEqual(answers, { occupation: "worker", region: "north" });
  const { body } = await (await device()).answer(asked, answers);
  assert.deepEqual(inWords(shown, body, asked)[1], ["Wo?", "Norden (north) – sent as it is, in clear"]);
});

test("a waiting report tells its window and the stratum that the issuer names", () => {
  // A wrong stratum would single out one person, and no one else could detect it.
  const channel = channelOf({ region: "north" }, { region: "south" });
  const report = { state: "queued", channel, token: "T", due: 4e12, asked: { place: 1 } };
  assert.match(howItLeaves(report), /^It leaves by itself .*issuer\.example says that you are of region: south/s);
  assert.match(howItLeaves({ ...report, token: "", due: 0 }), /^First this browser asks issuer\.example for a token/);
  assert.match(howItLeaves({ ...report, state: "withdrawn", token: "" }), /^The deletion is asked for at a moment/);
  assert.deepEqual([howItLeaves({ ...report, state: "sent" }), howItLeaves({ state: "queued" })], ["", ""]);
  assert.equal(whyNoToken("issuer problem 422 token-key-unknown", channel), "issuer.example gave no token: HTTP status 422, token-key-unknown");
  assert.equal(whyNoToken("issuer unreachable", channel), "issuer.example gave no token: it cannot be reached");
});

test("what was told is summed up with a bound from above", async () => {
  const [[], none] = toldInWords({ studies: [] });
  assert.equal(none, "Nothing yet.");
  const one = await device({ maxEpsilon: "10" });
  await one.answer(await read(study([NUMBER, YES_NO], { owner: "One clinic" })), { hours: 3, ever: true });
  const [[[title, lines]], all] = toldInWords(await one.told());
  const plain = lines.map((line) => line.replace(/[\u2068\u2069]/g, ""));
  assert.deepEqual([title, plain[0], ...plain.slice(2)], [
    "A survey", "told to: One clinic, collector.example", "asked: hours; ever", "cost: ε = 2", "the report waits for your consent",
  ]);
  assert.match(all, /ε = 2 of the 10 .* at most 88\.1% sure/);
});

test("a page around the frame hears ready and done and nothing else", async () => {
  const heard = [];
  globalThis.window = {};
  globalThis.parent = window;
  // Outside of a frame it tells nobody.
  const alone = await import("../../collector/pages/assets/framed.js?alone");
  alone.tellFrame("sent", true);
  globalThis.parent = { postMessage: (...said_) => heard.push(said_) };
  const tell = async (...states) => {
    heard.length = 0;
    const { tellFrame } = await import(`../../collector/pages/assets/framed.js?${states}`);
    for (const [state, ...more] of states) tellFrame(state, ...more);
    return heard.map(([{ ldpkit }]) => ldpkit);
  };
  assert.deepEqual(await tell(["new", true], ["checked", true], ["held", true], ["queued", true], ["sent", true], ["gone", true]), ["ready", "done"]);
  // Who left and who answered look alike.
  assert.deepEqual(await tell(["new", true], ["held", true], ["gone", true]), ["ready", "done"]);
  assert.deepEqual(await tell(["queued", true], ["queued", true, "unreachable"]), ["ready", "done"]);
  assert.deepEqual(await tell(["new", null]), ["done"]);
});
