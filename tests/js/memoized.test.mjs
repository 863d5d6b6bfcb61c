/** Kept answers: drawn once, charged once, repeated with fresh noise and erased permanently. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { mechanismFor } from "../../js/index.js";
import { CHOICE, MEMOIZED, device, isShare, memoryLedger, outcome, read, seeded, study } from "./support.mjs";

const WORKER = { brand: "worker" };
const round = (version, question = MEMOIZED, more) => read(study(question, { version, ...more }));
const permanent = (ledger) => ledger.read((memory) => memory.permanent.map(({ question, answer }) => [question, [...answer]]));

test("a permanent answer is drawn once and paid once", async () => {
  const ledger = memoryLedger();
  const one = await device({ ledger });
  await one.answer(await round(1), WORKER);
  assert.equal(await outcome(one.answer(await round(1), WORKER)), "answered");
  await one.answer(await round(2), WORKER);
  const kept = await permanent(ledger);
  assert.deepEqual([kept.length, kept[0][0], kept[0][1].length], [1, "brand", 1]);
  // The question is known by its id, whatever its words, and the answer stays, whatever is answered later.
  const worded = { ...MEMOIZED, text: { en: "Which one?", de: "Welche?" }, ordered: true };
  await one.answer(await round(3, worded, { languages: ["en", "de"] }), { brand: "student" });
  assert.deepEqual([await permanent(ledger), await one.epsilonLeft()], [kept, 2]);
});

test("a memoized report follows the permanent answer and not the true one", async () => {
  // Rounds whose true answer changes have one law, that of the permanent bits flipped again.
  const ledger = memoryLedger();
  const one = await device({ ledger, random: seeded(1) });
  const first = await round(1);
  const share = Number(mechanismFor(first.questions[0]).integers.again) / 2 ** 32;
  const flips = [0, 0, 0];
  const count = 400;
  for (let version = 1; version <= count; version++) {
    const brand = version % 2 ? "worker" : "teacher";
    const { body } = await one.answer(Object.freeze({ ...first, version, digest: `${version}` }), { brand });
    const [[, [kept]]] = await permanent(ledger);
    const payload = atob(JSON.parse(body).payloads.brand).charCodeAt();
    for (const bit of flips.keys()) flips[bit] += ((payload ^ kept) >> bit) & 1;
  }
  for (const times of flips) assert.deepEqual([isShare(times, count, share), isShare(times, count, share + 0.3)], [true, false]);
});

const CHANGES = {
  "no longer kept": { mechanism: CHOICE.mechanism },
  "another epsilon": { mechanism: { ...MEMOIZED.mechanism, epsilon: "1.5" } },
  "more choices": { choices: [...MEMOIZED.choices, "another"] },
};

test("a question with changed noise is not answered again", async () => {
  for (const [name, change] of Object.entries(CHANGES)) {
    const one = await device();
    await one.answer(await round(1), WORKER);
    assert.equal(await outcome(one.answer(await round(2, { ...MEMOIZED, ...change }), WORKER)), "answered", name);
    assert.equal(await one.epsilonLeft(), 2);
  }
  // Otherwise noise would be drawn twice and charged only the second time.
  const one = await device();
  await one.answer(await round(1, { ...MEMOIZED, mechanism: CHOICE.mechanism }), WORKER);
  assert.equal(await outcome(one.answer(await round(2), WORKER)), "answered");
});

test("withdrawal erases the permanent answer", async () => {
  const ledger = memoryLedger();
  const one = await device({ ledger });
  await one.answer(await round(1), WORKER);
  assert.equal(await one.withdraw("survey"), 0);
  assert.deepEqual(await permanent(ledger), [["brand", []]]);
  assert.equal(await outcome(one.answer(await round(2), WORKER)), "answered");
});

test("a round without consent is dropped by the next one", async () => {
  const ledger = memoryLedger();
  const one = await device({ ledger, maxEpsilon: "9" });
  await one.answer(await round(1, MEMOIZED, { id: "other" }), WORKER);
  await one.answer(await round(1), WORKER);
  await one.answer(await round(2), WORKER);
  await one.consent(await round(2));
  await one.answer(await round(3), WORKER);
  const kept = await ledger.read(({ reports }) => reports.map(({ study: id, version, state }) => `${id} ${version} ${state}`));
  assert.deepEqual(kept, ["other 1 held", "survey 2 queued", "survey 3 held"]);
});
