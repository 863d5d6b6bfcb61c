// Runs the JavaScript port for the audit: node javascript.mjs INDEX_JS, with a task as JSON on standard input.
import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

globalThis.crypto ??= webcrypto;
const { mechanismFor, parseStudy, perturbAnswers } = await import(pathToFileURL(process.argv[2]));
const task = JSON.parse(readFileSync(0, "utf8"));
const study = await parseStudy(task.study);
const asked = study.questions.find(({ id }) => id === task.question);
const mechanism = mechanismFor(asked);
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const special = { NaN, Infinity, "-Infinity": -Infinity };
const decoded = (answer) => answer?.special === undefined ? answer : special[answer.special];

function replay({ answer, bytes }) {
  let taken = 0;
  const all = Uint8Array.from(Buffer.from(bytes, "hex"));
  const stream = (size) => all.slice(taken, (taken += size));
  stream.forTests = true;
  try {
    return { payload: hex(mechanism.perturb(decoded(answer), stream)), taken };
  } catch (error) {
    return { error: String(error.code ?? error) };
  }
}

const answers = task.answers.map(decoded);
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
async function reports(people) {
  const ready = study.questions.map(mechanismFor).map(({ permanent, ...rest }) => rest);
  const made = [];
  for (const told of people) made.push((await perturbAnswers(study, told, undefined, ready)).body);
  return made;
}

const repeats = 10;
console.log(JSON.stringify({
  replays: task.replays.map(replay),
  reports: await reports(task.reports ?? []),
  draws,
  quantise: times((answer) => mechanism.quantise(answer), repeats),
  perturb: times((answer) => mechanism.perturb(answer), 1),
}));
