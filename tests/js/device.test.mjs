/** A device answers a study once, within its budget, and says what it refuses before any noise is drawn. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mock, test } from "node:test";
import * as library from "../../js/index.js";
import {
  CHOICE, Collector, MEMOIZED, NUMBER, RECORD, REGION, YES_NO, device, golden, isShare, memoryLedger, outcome,
  read, seeded, study, withEpsilon,
} from "./support.mjs";

const BOTH = await read(study([NUMBER, CHOICE]));
const ANSWERS = { hours: 3.5, occupation: "worker" };
const EVER = { ever: "yes" };
const [A, B] = ["https://a.example", "https://b.example"];

test("types name what the library and the device have", async () => {
  const types = readFileSync(new URL("../../js/index.d.ts", import.meta.url), "utf8");
  const exported = [...types.matchAll(/^export (?:declare )?(?:class|function) (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual(exported.sort(), Object.keys(library).sort());
  const [, methods] = /^export interface Device \{(.*?)^\}/ms.exec(types);
  const typed = [...methods.matchAll(/^  (?:readonly )?(\w+)[(:]/gm)].map(([, name]) => name);
  assert.deepEqual(typed.sort(), Object.keys(await device()).sort());
});

test("a report is kept before it is sent and a question is answered once", async () => {
  const one = await device();
  const report = await one.answer(BOTH, ANSWERS);
  const { id, study: of, version, digest, payloads } = JSON.parse(report.body);
  assert.deepEqual([report.state, id, of, version, digest], ["held", report.id, "survey", 1, BOTH.digest]);
  assert.deepEqual(Object.keys(payloads).sort(), ["hours", "occupation"]);
  assert.equal(await outcome(one.answer(BOTH, ANSWERS), true), "answered hours");
  const later = await read(study(CHOICE, { version: 2 }));
  assert.equal(await outcome(one.answer(later, { occupation: "student" }), true), "answered occupation");
  assert.deepEqual(await one.status(BOTH), { answered: true, report });
});

test("only newer versions are answered after an answer", async () => {
  const one = await device();
  for (const [version, id, expected] of [[2, "a", "done"], [1, "b", "answered"], [2, "c", "answered"], [3, "d", "done"]]) {
    const asked = await read(study({ ...YES_NO, id }, { version }));
    assert.equal(await outcome(one.answer(asked, { [id]: true })), expected);
    assert.equal((await one.status(asked)).answered, true);
  }
  assert.equal(await one.epsilonLeft(), 2);
  // One that was only drawn blocks no lower one.
  const drawn = (version) => read(study([YES_NO, NUMBER], { version, sample_one_question: true }));
  const other = await device();
  await other.draw(await drawn(2));
  assert.equal((await other.answer(await drawn(1), { ever: true, hours: 3 })).version, 1);
});

const WRONG = {
  "a list": [[4], "input answers"],
  "a missing one": [{ hours: 3 }, "answer occupation"],
  "one more": [{ ...ANSWERS, more: 1 }, "answer more"],
  "no choice": [{ ...ANSWERS, occupation: "queen" }, "answer occupation"],
};
test("a wrong answer spends nothing", async () => {
  const one = await device();
  for (const [name, [answers, expected]] of Object.entries(WRONG)) {
    assert.equal(await outcome(one.answer(BOTH, answers), true), expected, name);
    assert.deepEqual([(await one.status(BOTH)).answered, await one.epsilonLeft()], [false, 4], name);
  }
});

test("the budget is exact and spans studies", async () => {
  // 0.1 + 0.2 is all of 0.3, which floats would call too much.
  const one = await device({ maxEpsilon: "0.3" });
  const costing = (cost, id) => read(study(withEpsilon(NUMBER, cost), { id }));
  assert.equal(await outcome(one.answer(await costing("0.1", "a"), { hours: 3 })), "done");
  assert.equal(await outcome(one.answer(await costing("0.2", "b"), { hours: 3 })), "done");
  assert.equal(await outcome(one.answer(await costing("0.000001", "c"), { hours: 3 })), "budget");
  assert.equal(await one.epsilonLeft(), 0);
});

test("delta is a budget too", async () => {
  // A loose one lets nearly every answer through, however small epsilon is.
  const ledger = memoryLedger();
  const tried = async (id, deltas, more, options) => {
    const parts = deltas.map((delta, place) => ({ ...RECORD, id: `q${place}`, mechanism: { ...RECORD.mechanism, delta } }));
    const answers = Object.fromEntries(parts.map((part) => [part.id, { age: 30, rate: 4 }]));
    const one = await device({ maxEpsilon: "64", ledger, ...options });
    return outcome(one.answer(await read(study(parts, { id, ...more })), answers));
  };
  const found = [];
  for (const [id, delta] of [["a", "0.5"], ["b", "6e-5"], ["c", "6e-5"], ["d", "4e-5"]]) found.push(await tried(id, [delta]));
  assert.deepEqual(found, ["budget", "done", "budget", "done"]);
  const fresh = { ledger: memoryLedger() };
  assert.equal(await tried("e", ["6e-5", "5e-5"], {}, fresh), "budget");
  assert.equal(await tried("f", ["6e-5", "5e-5"], { sample_one_question: true }, fresh), "done");
  assert.equal(await tried("g", ["6e-5", "5e-5"], {}, { ...fresh, maxDelta: "0.01" }), "done");
});

test("budgets are decimals above zero", async () => {
  for (const field of ["maxEpsilon", "maxDelta", "maxEpsilonPerCollector"]) {
    for (const budget of ["0", "-1", "four", "1e99", null]) {
      assert.equal(await outcome(device({ [field]: budget }), true), `input ${field}`);
    }
  }
});

for (const zone of ["Pacific/Kiritimati", "Pacific/Pago_Pago"]) {
  test(`a study is answered on its days where the person is: ${zone}`, async () => {
    // At UTC+14 it is the 16th already. The first day may be that of a place further east.
    process.env.TZ = zone;
    mock.timers.enable({ apis: ["Date"], now: Date.UTC(2026, 5, 15, 12, 30) });
    const here = zone.endsWith("Kiritimati") ? 16 : 15;
    const tried = async (days) => outcome((await device()).answer(await read(study(YES_NO, days)), EVER));
    const found = [];
    for (const day of [14, 15, 16, 17]) found.push([await tried({ opens: `2026-06-${day}` }), await tried({ closes: `2026-06-${day}` })]);
    mock.timers.reset();
    process.env.TZ = "UTC";
    const expected = [14, 15, 16, 17].map((day) => [day <= here + 1 ? "done" : "closed", day >= here ? "done" : "closed"]);
    assert.deepEqual(found, expected);
  });
}

const ONE = await read(study([NUMBER, CHOICE, RECORD], { sample_one_question: true }));
const ONE_ANSWERS = { ...ANSWERS, rating: { age: 30, rate: 4 } };

test("one question is drawn evenly and reports have one size", async () => {
  const random = seeded(1);
  const asked = await read(study([NUMBER, CHOICE, YES_NO], { sample_one_question: true }));
  const found = [];
  for (let number = 0; number < 300; number++) {
    const one = await device({ random });
    const { body } = await one.answer(asked, { ...ANSWERS, ...EVER });
    found.push([Object.keys(JSON.parse(body).payloads).join(), body.length, await one.epsilonLeft()].join());
  }
  const counts = Object.groupBy(found, (one) => one);
  assert.equal(Object.keys(counts).length, 3);
  assert.ok(Object.values(counts).every(({ length }) => isShare(length, 300, 1 / 3)));
  assert.equal(new Set(found.map((one) => one.split(",").slice(1).join())).size, 1);
});

test("a drawn question stays the same and alone is answered", async () => {
  const ledger = memoryLedger();
  const one = await device({ ledger });
  const place = await one.draw(ONE);
  assert.equal(await (await device({ ledger })).draw(ONE), place);
  const { id } = ONE.questions[place];
  assert.equal(await outcome(one.answer(ONE, ONE_ANSWERS)), "answer");
  const { body } = await one.answer(ONE, { [id]: ONE_ANSWERS[id] });
  assert.deepEqual(Object.keys(JSON.parse(body).payloads), [id]);
  // Neither drawn nor not is any of them asked again.
  for (const question of [NUMBER, CHOICE, RECORD]) {
    const later = await read(study(question, { version: 2 }));
    assert.equal(await outcome(one.answer(later, { [question.id]: ONE_ANSWERS[question.id] })), "answered");
  }
  assert.equal(await one.draw(BOTH), -1);
});

test("a memoized question of which one is drawn costs its own epsilon", async () => {
  // Each version may draw another one, which is paid alone; questions asked once cost their largest.
  const noise = { ...MEMOIZED.mechanism, epsilon: "0.75", instantaneous_epsilon: "0.5" };
  const questions = [{ ...MEMOIZED, mechanism: noise }, { ...MEMOIZED, id: "brands" }, withEpsilon(NUMBER, "1.5"), CHOICE];
  const asked = await read(study(questions, { sample_one_question: true }));
  const random = seeded(1);
  const spent = {};
  for (let number = 0; number < 60; number++) {
    const one = await device({ random });
    const { body } = await one.answer(asked, { brand: "worker", brands: "worker", ...ANSWERS });
    const [drawn] = Object.keys(JSON.parse(body).payloads);
    (spent[drawn] ??= new Set()).add(4 - (await one.epsilonLeft()));
  }
  assert.deepEqual(spent, { brand: new Set([0.75]), brands: new Set([2]), hours: new Set([1.5]), occupation: new Set([1.5]) });
});

const TICKETS = [
  [" word ", "word"], ["wo\u00adrd\u200b", "word"], ['"word".', "word"], ["\u201eword\u201c", "word"], ["wo\u2011rd", "word"],
  ["https://c.example/s/survey#ticket=wo\n rd.", "word"], ["", ""], ["wörd", "wrd"], [5, null], [["word"], null],
];

test("a ticket is read without what surrounds it in a letter", async () => {
  const asked = await read(study(YES_NO));
  for (const [given, expected] of TICKETS) {
    const [first, later] = [await device(), await device()];
    await later.answer(asked, EVER);
    const found = [await outcome(first.answer(asked, EVER, given), true), await outcome(later.giveTicket("survey", given), true)];
    assert.deepEqual(found, Array(2).fill(expected === null ? "input ticket" : "done"), given);
    for (const one of expected === null ? [] : [first, later]) {
      assert.equal((await one.status(asked)).report.ticket, expected, given);
    }
  }
});

test("a source of secrets is the systems own or says that it is for tests", async () => {
  const asked = await read(study(YES_NO));
  for (const random of [(size) => new Uint8Array(size), Object.assign(() => new Uint8Array(3), { forTests: true })]) {
    const one = await device({ random });
    assert.equal(await outcome(one.answer(asked, EVER)), "input");
    assert.equal(await one.epsilonLeft(), 4);
  }
});

const EDITS = {
  "choices reversed": ({ questions }) => questions[0].choices.reverse(),
  "a choice more": ({ questions }) => questions[0].choices.push("other"),
  "questions reversed": ({ questions }) => questions.reverse(),
  "other bounds": ({ questions }) => (questions[1].bounds = [[0n, 1n], [99n, 1n]]),
  "another epsilon": ({ questions }) => (questions[0].mechanism.epsilon[0] = 20n),
};
const COPIES = {
  "a copy": (asked) => ({ ...asked }),
  "a clone": (asked) => structuredClone({ ...asked, split: undefined, refuseToday: undefined }),
  "a copy with questions reversed": (asked) => ({ ...asked, questions: asked.questions.toReversed() }),
};

// attack 16: A page sorts the choices in place, to show them, so that each answer would be stored as another one.
test("an edited study is not answered", async () => {
  const refusable = { ...NUMBER, id: "salary", refusal: { share: "0.5" } };
  const asked = await read(study([CHOICE, NUMBER, { ...YES_NO, refusal: true }, refusable]));
  const answers = { occupation: "student", hours: 3, ever: "yes", salary: null };
  for (const [name, edit] of Object.entries(EDITS)) assert.throws(() => edit(asked), TypeError, name);
  const one = await device({ maxEpsilon: "64" });
  for (const [name, copied] of Object.entries(COPIES)) {
    assert.equal(await outcome(one.answer(copied(asked), answers), true), "input study", name);
  }
  assert.equal(await one.epsilonLeft(), 64);
  // Sorted copies, to show them, change nothing.
  asked.questions[0].choices.toSorted();
  assert.equal(await outcome(one.answer(asked, answers)), "done");
});

// Runs each step, {at: origin, ask: a study, …options}, on one ledger: outcomes, what was told, and what is left.
async function steps(...each) {
  const ledger = memoryLedger();
  const found = [];
  for (const { at: collector, ask, answers = EVER, withdraw, ...options } of each) {
    const one = device({ maxEpsilon: "10", collector, ledger, ...options });
    found.push(await outcome(one.then((its) => (ask ? its.answer(ask, answers) : its.withdraw(withdraw))), true));
  }
  const one = await device({ maxEpsilon: "10", ledger });
  return [found, (await one.told()).studies.map(({ study: id, origin, epsilon }) => [id, origin, epsilon]), await one.epsilonLeft()];
}
const ONCE = await read(study(YES_NO));
const ROUNDS = await Promise.all([1, 2, 3].map((version) => read(study(MEMOIZED, { version }))));
const BRAND = { brand: "worker" };

test("the same question at another origin is another question", async () => {
  const [found, told, left] = await steps(...[`${A}/one`, `${A}/two`, B].map((at) => ({ at, ask: ONCE })));
  assert.deepEqual(found, ["done", "answered ever", "done"]);
  assert.deepEqual([told, left], [[["survey", A, 1], ["survey", B, 1]], 8]);
});

// attack 7: A study's report is larger than any device sends, so that devices spend epsilon for nothing.
test("a report that is too large costs nothing", async () => {
  const noise = { name: "oue", epsilon: "0.01" };
  const asked = Array.from({ length: 97 }, (_, place) => ({ ...CHOICE, id: `q${place}`, choices: { count: 65_536 }, mechanism: noise }));
  const ledger = memoryLedger();
  const answering = (await device({ ledger })).answer(await read(study(asked)), Object.fromEntries(asked.map(({ id }) => [id, 1])));
  assert.equal(await outcome(answering), "study");
  assert.equal(await ledger.read(({ spent, reports }) => spent.length + reports.length), 0);
});

test("a permanent answer belongs to one origin", async () => {
  const asked = [[A, 0], [B, 0], [A, 1]].map(([at, place]) => ({ at, ask: ROUNDS[place], answers: BRAND }));
  const later = [A, B].map((at) => ({ at, ask: ROUNDS[2], answers: BRAND }));
  const [found] = await steps(...asked, { at: B, withdraw: "survey" }, ...later);
  assert.deepEqual(found, ["done", "done", "done", "done", "done", "answered brand"]);
});

test("an app that names the former origin asks nothing again", async () => {
  // Nor does a later app that names it no more. A memoized question goes on, and is paid once.
  const moved = { at: B, formerly: [`${A}/old/`] };
  const [found] = await steps({ at: A, ask: ONCE }, { ...moved, ask: ONCE }, { at: B, ask: ONCE });
  assert.deepEqual(found, ["done", "answered ever", "answered ever"]);
  const round = (place, more) => ({ ask: ROUNDS[place], answers: BRAND, ...more });
  const [rounds, told, left] = await steps(round(0, { at: A }), round(2, moved), round(1, moved));
  assert.deepEqual([rounds, told, left], [["done", "done", "answered brand"], [["survey", B, 2]], 8]);
  for (const url of ["http://a.example", "", "a"]) {
    assert.equal(await outcome(device({ formerly: [A, url] }), true), "input formerly");
  }
});

test("a collector's budget counts all its studies and former origins", async () => {
  const each = await Promise.all(["one", "two", "three"].map((id) => read(study(YES_NO, { id }))));
  const less = { maxEpsilonPerCollector: "1.5" };
  const [found, , left] = await steps(
    { at: A, ask: each[0], ...less },
    { at: `${A}/two`, ask: each[1], ...less },
    { at: B, ask: each[1], formerly: [A], ...less },
    { at: B, ask: each[2], maxEpsilonPerCollector: "2" },
  );
  assert.deepEqual([found, left], [["done", "budget ", "budget ", "done"], 8]);
});

const statesIn = (ledger) => ledger.read(({ reports }) => reports.map(({ version, state }) => `${version} ${state}`).join());

// attack 7: Two collectors publish a study of the same id: neither withdraws nor invites the other's report.
test("a device changes no report of another collector", async () => {
  const ledger = memoryLedger();
  const [one, other] = await Promise.all([A, B].map((collector) => device({ collector, ledger })));
  await one.answer(ONCE, EVER, "CODE");
  assert.deepEqual(await other.status(ONCE), { answered: false, report: undefined });
  assert.equal(await outcome(other.withdraw("survey"), true), "input study");
  assert.equal(await outcome(other.giveTicket("survey", "OTHER"), true), "input study");
  assert.equal(await other.consent(ONCE), undefined);
  assert.deepEqual([(await one.status(ONCE)).report.ticket, await statesIn(ledger)], ["CODE", "1 held"]);
  await one.consent(ONCE);
  await ledger.write(({ reports }) => (reports[0].left = true));
  await other.answer(await read(study({ ...YES_NO, id: "another" }, { version: 2 })), { another: true });
  assert.deepEqual([await other.withdraw("survey"), await statesIn(ledger)], [0, "1 queued"]);
  assert.deepEqual([await one.withdraw("survey"), await statesIn(ledger)], [1, "1 withdrawn"]);
});

// attack 8: Another tab draws the report of a second version meanwhile: it is not sent unseen.
test("consent to one version covers no other", async () => {
  const ledger = memoryLedger();
  const [one, other] = await Promise.all([device({ ledger }), device({ ledger })]);
  const second = await read(study({ ...YES_NO, id: "another" }, { version: 2 }));
  const shown = await one.answer(ONCE, EVER);
  await other.answer(second, { another: true });
  for (const agreed of [ONCE, shown]) assert.deepEqual([await one.consent(agreed), await statesIn(ledger)], [undefined, "2 held"]);
  assert.deepEqual([(await other.consent(second)).state, await statesIn(ledger)], ["queued", "2 queued"]);
  assert.equal((await other.consent(second)).state, "queued");
  // One of an earlier version that is held still may be sent.
  const alone = await device();
  await alone.answer(ONCE, EVER);
  assert.equal((await alone.consent((await alone.status(second)).report)).state, "queued");
});

test("withdrawal before consent leaves nothing but the spend", async () => {
  const collector = new Collector(BOTH);
  const one = await device({ transport: collector.transport });
  await one.answer(BOTH, ANSWERS);
  for (const job of [() => one.withdraw("surwey"), () => one.giveTicket("surwey", "code")]) {
    // A 0 would read as if all were deleted.
    assert.equal(await outcome(job(), true), "input study");
  }
  assert.equal(await one.withdraw("survey"), 0);
  await one.flush({ attempts: 1 });
  assert.deepEqual(await one.status(BOTH), { answered: true, report: undefined });
  assert.equal(await outcome(one.answer(BOTH, ANSWERS)), "answered");
  assert.deepEqual(collector.requests, []);
});

test("what a study asks of others than this device is refused before any noise", async () => {
  for (const [change, field] of [[{ protocol: { name: "secure_sum" } }, "protocol"], [{ respondent: "holder" }, "respondent"]]) {
    assert.equal(await outcome(read(study(YES_NO, change)), true), `study ${field}`);
  }
  const feature = { id: "age", ask: "yes_no", bounds: ["0", "1"] };
  assert.equal(await outcome(read(study({ ...RECORD, features: [feature] })), true), "study questions[0].features[0].bounds");
  assert.equal(await outcome(library.parseStudy(undefined)), "study");
  const { crypto } = globalThis;
  Object.defineProperty(globalThis, "crypto", { value: {}, configurable: true });
  const found = await library.parseStudy("{}").catch(({ code, problem }) => `${code}: ${problem}`);
  Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true });
  assert.equal(found, "input: needs https");
});

// attack 9: A collector's address of plain http would send withdrawal secrets and tickets in clear.
test("origins are those of the vectors and of the URL standard", async () => {
  const { originOf, safeBaseOf } = await import("../../js/address.js");
  for (const { url, origin } of golden("vectors/origins").origins) {
    const found = (() => {
      try {
        return [originOf(url), new URL(url).origin, originOf(safeBaseOf(url))];
      } catch ({ code, field }) {
        return `${code} ${field}`;
      }
    })();
    assert.deepEqual(found, origin ? [origin, origin, origin] : "input collector", url);
  }
  const bases = { "HTTPS://Collect.Example.org:443//": "https://collect.example.org", "https://[2001:db8::1]:8443/a/": "https://[2001:db8::1]:8443/a" };
  for (const [url, base] of Object.entries(bases)) assert.equal(safeBaseOf(url), base);
});

test("a public field sends nothing that an earlier version asked behind noise", async () => {
  const one = await device();
  const kept = { ...MEMOIZED, mechanism: { ...MEMOIZED.mechanism, of: "randomized_response" } };
  await one.answer(await read(study([kept, YES_NO])), { ...BRAND, ...EVER });
  const left = await one.epsilonLeft();
  const later = (id) => read(study(kept, { version: 2, public: [{ ...REGION, id }] }));
  assert.equal(await outcome(one.answer(await later("ever"), { ...BRAND, ever: "north" })), "answered");
  const { body } = await one.answer(await later("region"), { ...BRAND, region: "north" });
  assert.deepEqual([JSON.parse(body).public, await one.epsilonLeft()], [{ region: "north" }, left]);
});
