/** Wherever a device keeps its ledger: one contract, and what was damaged answers nothing. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { expoLedger } from "../../js/ledgers/expo.js";
import { nodeLedger } from "../../js/ledgers/node.js";
import {
  Collector, MEMOIZED, NUMBER, REGION, YES_NO, device, memoryLedger, outcome, read, study, withEpsilon,
} from "./support.mjs";

const folder = mkdtempSync(join(tmpdir(), "ldpkit-"));
after(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = () => join(folder, `${++files}.db`);

/** The methods of expo-sqlite's SQLiteDatabase that a ledger calls, on a connection of its own. */
function standIn(databasePath) {
  const database = new DatabaseSync(databasePath);
  return {
    databasePath,
    execSync: (source) => database.exec(source),
    getFirstSync: (source) => database.prepare(source).get() ?? null,
    runSync: (source, ...values) => database.prepare(source).run(...values),
  };
}

/** Each opens two ledgers on one memory, as two processes have it where there can be two. */
const KINDS = {
  memory: async () => Array(2).fill(memoryLedger()),
  node: async (file = newFile()) => [await nodeLedger(file), await nodeLedger(file)],
  expo: async (file = newFile()) => [expoLedger(standIn(file)), expoLedger(standIn(file))],
};
const NUMBERS = await read(study(NUMBER));
const BITS = await read(study(MEMOIZED, { id: "bits" }));
const DEAR = await read(study(withEpsilon(NUMBER, "19"), { id: "dear" }));
const CLEAR = await read(study(NUMBER, { id: "clear", public: [REGION] }));

for (const [kind, open] of Object.entries(KINDS)) {
  test(`a ledger keeps answers once exactly and in order: ${kind}`, async () => {
    const [ledger, again] = await open();
    const collector = new Collector(NUMBERS);
    const { transport } = collector;
    const options = { maxEpsilon: "20", transport };
    const [one, other] = [await device({ ledger, ...options }), await device({ ledger: again, ...options })];
    const raced = await Promise.all([one, other].map((its) => outcome(its.answer(NUMBERS, { hours: 3 }))));
    assert.deepEqual(raced.sort(), ["answered", "done"]);
    const { report } = await other.status(NUMBERS);
    assert.deepEqual((await one.status(NUMBERS)).report, report);
    assert.equal(await outcome(other.answer(NUMBERS, { hours: 4 })), "answered");
    assert.deepEqual([await one.epsilonLeft(), await other.epsilonLeft()], [19, 19]);
    // A permanent answer comes back as the bytes that it was, and a cost as whole numbers.
    await one.answer(BITS, { brand: "worker" });
    const kept = (its) => its.read(({ permanent: [{ answer }], spent }) => [answer.constructor, ...answer, typeof spent[0].epsilon[0]]);
    assert.deepEqual(await kept(ledger), await kept(again));
    const [bytes, , cost] = await kept(again);
    assert.deepEqual([bytes, cost], [Uint8Array, "bigint"]);
    assert.equal(await outcome(other.answer(DEAR, { hours: 3 })), "budget");
    // Neither half of what was not finished stays.
    const fails = (memory) => {
      memory.reports.length = 0;
      throw new Error("3 hours");
    };
    assert.equal(await outcome(ledger.write(fails)), "ledger");
    const unkept = { get body() { throw new Error("3 hours"); } };
    assert.equal(await outcome(ledger.write((memory) => (memory.reports = [unkept]))), "ledger");
    assert.equal(await again.read(({ reports }) => reports.length), 2);
    // One at a time sends, also after one that failed.
    let inside = 0;
    const work = async () => {
      assert.equal(++inside, 1);
      await new Promise((resolve) => setTimeout(resolve, 2));
      inside--;
    };
    await assert.rejects(ledger.alone(async () => {
      throw new Error("failed");
    }));
    await Promise.all(Array.from({ length: 4 }, (_, turn) => [ledger, again][turn % 2].alone(work)));
    await one.consent(NUMBERS);
    await Promise.all([one.flush({ attempts: 1 }), other.flush({ attempts: 1 })]);
    assert.deepEqual([(await other.status(NUMBERS)).report.state, (await one.status(BITS)).report.state], ["sent", "held"]);
    assert.equal(await other.withdraw("survey"), 1);
    await one.flush({ attempts: 1 });
    assert.deepEqual([(await one.status(NUMBERS)).report, collector.methods], [undefined, ["PUT", "DELETE"]]);
    assert.deepEqual((await other.told()).studies.map((its) => its.study), ["survey", "bits"]);
    // What was asked behind noise is read back, to see that it does not leave in clear.
    assert.equal(await outcome(one.answer(CLEAR, { hours: 3, region: "north" })), "done");
    assert.equal((await other.consent(CLEAR)).state, "queued");
  });

  // attack 5: A study names fields and values like the tags of a text ledger, to have it read as something else.
  test(`names that look like the ledgers tags are kept apart from them: ${kind}`, async () => {
    const [ledger] = await open();
    for (const name of ["integer", "bytes", "length"]) {
      const choices = ["integer 5", "bytes 1,2"];
      const asked = await read(study({ ...MEMOIZED, id: name, choices: [...choices, "5"] }, { id: name, public: [{ id: "x", choices }] }));
      const one = await device({ ledger, maxEpsilon: "20" });
      const { body } = await one.answer(asked, { [name]: "bytes 1,2", x: "integer 5" });
      assert.equal((await one.status(asked)).report.body, body);
    }
    const kinds = await ledger.read(({ spent, permanent }) => [typeof spent[0].epsilon[0], permanent[0].answer.constructor]);
    assert.deepEqual(kinds, ["bigint", Uint8Array]);
  });
}

for (const kind of ["node", "expo"]) {
  // attack 11: Someone reads an app's ledger after the withdrawal: SQLite may leave deleted content.
  test(`a withdrawn report is wiped from the file: ${kind}`, async () => {
    // Of more than a page of the file, as SQLite may leave what is deleted.
    const file = newFile();
    const [ledger] = await KINDS[kind](file);
    const many = Array.from({ length: 20 }, (_, place) => withEpsilon({ ...YES_NO, id: `q${place}` }, "0.1"));
    const asked = await read(study([MEMOIZED, ...many]));
    const one = await device({ ledger, maxEpsilon: "20" });
    const answers = { brand: "worker", ...Object.fromEntries(many.map(({ id }) => [id, "no"])) };
    await one.answer(asked, answers, "TICKET-OF-ANNA");
    const { body, secret } = (await one.status(asked)).report;
    const traces = ["TICKET-OF-ANNA", secret, body.slice(0, 40).replaceAll('"', '\\"')];
    const isLeft = () => {
      const text = readFileSync(file, "latin1");
      return [...traces.map((trace) => text.includes(trace)), /"answer":"\\u0000bytes \d/.test(text)];
    };
    assert.deepEqual(isLeft(), Array(4).fill(true));
    await one.consent(asked);
    assert.equal(await one.withdraw("survey"), 0);
    assert.deepEqual(isLeft(), Array(4).fill(false));
  });
}

test("a toJSON of an app does not damage the ledger", async () => {
  // Many apps have one for whole numbers: what is spent stays one.
  BigInt.prototype.toJSON = function toJSON() {
    return `${this}`;
  };
  const file = newFile();
  await (await device({ ledger: nodeLedger(file) })).answer(NUMBERS, { hours: 3 });
  delete BigInt.prototype.toJSON;
  const again = await device({ ledger: nodeLedger(file) });
  assert.deepEqual([await again.epsilonLeft(), (await again.told()).studies[0].study], [3, "survey"]);
});

const DAMAGE = {
  "no row": "DELETE FROM ldpkit_ledger",
  "another layout": "UPDATE ldpkit_ledger SET layout = 2",
  "another study": "UPDATE ldpkit_ledger SET memory = replace(memory, 'survey', 'survez')",
  "another cost": "UPDATE ldpkit_ledger SET memory = replace(memory, 'integer 1', 'integer 0')",
  "half a text": "UPDATE ldpkit_ledger SET memory = substr(memory, 1, 40)",
  "another's table": "DROP TABLE ldpkit_ledger; CREATE TABLE ldpkit_ledger (name TEXT)",
};
const answered = async (file) => {
  const answering = nodeLedger(file).then(async (ledger) => (await device({ ledger })).answer(NUMBERS, { hours: 3 }));
  return outcome(answering);
};

test("a damaged ledger answers nothing and is not changed", async () => {
  const damages = Object.entries(DAMAGE).map(([name, sql]) => [name, (file) => new DatabaseSync(file).exec(sql)]);
  // SQLite would take an empty file for a new database.
  damages.push(["an empty file", (file) => writeFileSync(file, "")], ["no database", (file) => writeFileSync(file, "none".repeat(300))]);
  for (const [name, damage] of damages) {
    const file = newFile();
    assert.equal(await answered(file), "done");
    damage(file);
    const before = readFileSync(file);
    assert.equal(await answered(file), "ledger", name);
    assert.ok(before.equals(readFileSync(file)), name);
  }
  assert.equal(await answered(join(folder, "missing", "kept.db")), "ledger");
});

test("a ledger that forgets is refused", async () => {
  // SQLite has names for databases in memory; a relative path is another file in each folder.
  for (const path of [":memory:", "", "file:kept?mode=memory", "kept.db", 7]) assert.equal(await outcome(nodeLedger(path)), "ledger");
  for (const path of [":memory:", ""]) assert.throws(() => expoLedger({ databasePath: path }), { code: "ledger" });
});

test("a ledgers file is private and nothing else stays beside it", async () => {
  const file = newFile();
  await answered(file);
  chmodSync(file, 0o644);
  assert.equal(await answered(file), "answered");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder).filter((name) => !/^\d+\.db(-sending)?$/.test(name)), []);
});
