// Runs the JavaScript port for the audit: node javascript.mjs INDEX_JS, with a task as JSON on standard input.
import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { perturbingBy } from "../../portable/perturbing.mjs";

globalThis.crypto ??= webcrypto;
const port = pathToFileURL(process.argv[2]);
const { mechanismFor, openDevice, parseStudy } = await import(port);
const perturbAnswers = await perturbingBy(port);
const task = JSON.parse(readFileSync(0, "utf8"));
const study = await parseStudy(task.study);
const asked = study.questions.find(({ id }) => id === task.question);
const mechanism = mechanismFor(asked);
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const special = { NaN, Infinity, "-Infinity": -Infinity };
const decoded = (answer) => answer?.special === undefined ? answer : special[answer.special];

/** A source of these bytes, whose `taken` says how many were read. */
function streamOf(bytes) {
  const all = Uint8Array.from(Buffer.from(bytes, "hex"));
  const stream = (size) => all.slice(stream.taken, (stream.taken += size));
  return Object.assign(stream, { forTests: true, taken: 0 });
}

function replay({ answer, bytes }) {
  const stream = streamOf(bytes);
  try {
    return { payload: hex(mechanism.perturb(decoded(answer), stream)), taken: stream.taken };
  } catch (error) {
    return { error: String(error.code ?? error) };
  }
}

const answers = task.answers.map(decoded);
const mixed = task.mixed.map((answer) => hex(mechanism.perturb(decoded(answer))));
const draws = answers.map((answer) => Array.from({ length: task.samples }, () => hex(mechanism.perturb(answer))));

/** Nanoseconds of `quantise`, several in a row, and of `perturb`, of each answer in turns. */
function times(work, repeats) {
  const found = answers.map(() => []);
  for (let run = -200; run < task.runs; run++) {
    const order = answers.map((_, index) => index).sort(() => crypto.getRandomValues(new Uint8Array(1))[0] - 128);
    for (const index of order) {
      const start = process.hrtime.bigint();
      for (let again = 0; again < repeats; again++) work(answers[index]);
      if (run >= 0) found[index].push(Number(process.hrtime.bigint() - start));
    }
  }
  return found;
}

/** Whole reports, of one person each: a memoized answer is drawn for it, and kept for nothing. */
async function reports(people, random = () => undefined) {
  const ready = study.questions.map(mechanismFor).map(({ permanent, ...rest }) => rest);
  const made = [];
  for (const told of people) made.push((await perturbAnswers(study, told.answers ?? told, random(told), ready)).body);
  return made;
}

/** An IndexedDB of one record for each name, as much of it as the ledger uses. */
function memoryDatabase() {
  const kept = new Map();
  const soon = (request, event) => (queueMicrotask(() => request[event]?.({ target: request, oldVersion: 0 })), request);
  const open = (name) => {
    const get = () => soon({ result: structuredClone(kept.get(name)) }, "onsuccess");
    const put = (memory) => kept.set(name, structuredClone(memory));
    const transaction = () => {
      const one = { objectStore: () => ({ get, put }), abort: () => soon(one, "onabort") };
      setImmediate(() => one.oncomplete?.());
      return one;
    };
    const request = { result: { createObjectStore: () => ({ put }), transaction } };
    queueMicrotask(() => (request.onupgradeneeded({ oldVersion: 0 }), request.onsuccess()));
    return request;
  };
  return { open };
}

/** What each device reports of the versions that it answers in turn, on bytes that are given for each. */
async function rounds(devices, versions) {
  globalThis.indexedDB = memoryDatabase();
  const parsed = await Promise.all(versions.map((version) => parseStudy(version)));
  const made = [];
  for (const [place, cases] of devices.entries()) {
    let stream;
    const random = Object.assign((size) => stream(size), { forTests: true });
    const budget = { maxEpsilon: "1000000", maxDelta: "1000000" };
    const device = await openDevice({ ...budget, collector: "https://example.org", name: `device ${place}`, random });
    for (const [round, { answers: told, bytes }] of cases.entries()) {
      stream = streamOf(bytes);
      made.push((await device.answer(parsed[round], told)).body);
    }
  }
  return made;
}

const repeats = 10;
console.log(JSON.stringify({
  replays: task.replays.map(replay),
  reports: await reports(task.reports ?? []),
  people: await reports(task.people ?? [], ({ bytes }) => streamOf(bytes)),
  devices: await rounds(task.devices ?? [], task.versions ?? []),
  draws,
  mixed,
  quantise: times((answer) => mechanism.quantise(answer), repeats),
  perturb: times((answer) => mechanism.perturb(answer), 1),
}));
