// Runs the test vectors on the JavaScript port, or those of one mechanism:
// node run_vectors.mjs INDEX_JS VECTORS [MECHANISM]
import { createHash, webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { perturbingBy } from "./perturbing.mjs";

// Node 18 has it, but not under its name in browsers.
globalThis.crypto ??= webcrypto;

const [port, folder, only] = process.argv.slice(2);
const { mechanismFor, parseStudy } = await import(pathToFileURL(port));
const perturbAnswers = await perturbingBy(pathToFileURL(port));
const { drawIdentity } = await import(new URL("report.js", pathToFileURL(port)));
const load = (name) => JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
const hex = (bytes) => Buffer.from(bytes).toString("hex");

const recorded = (text) => Object.assign(() => Buffer.from(text, "hex"), { forTests: true });

function streamOf({ head = "", seed }) {
  let rest = Buffer.from(head, "hex");
  let counter = 0n;
  const stream = (size) => {
    while (rest.length < size) {
      const block = Buffer.alloc(8);
      block.writeBigUInt64BE(counter++);
      rest = Buffer.concat([rest, createHash("sha256").update(seed).update(block).digest()]);
    }
    stream.taken += size;
    const taken = Uint8Array.from(rest.subarray(0, size));
    rest = rest.subarray(size);
    return taken;
  };
  stream.taken = 0;
  stream.forTests = true;
  return stream;
}

/** In an answer these strings stand for numbers that JSON lacks. */
function decoded(answer) {
  if (answer !== null && typeof answer === "object" && !Array.isArray(answer)) {
    return Object.fromEntries(Object.entries(answer).map(([name, value]) => [name, decoded(value)]));
  }
  return ["NaN", "Infinity", "-Infinity"].includes(answer) ? Number(answer) : answer;
}

/**
 * The answer of an older vector as a finite number: what is none is refused now, and took the place on the grid
 * of a number far beyond the bounds, or of their middle.
 */
function inItsPlace(asked, answer) {
  if (asked?.features && answer !== null && typeof answer === "object") {
    const fields = [...asked.features, asked.response];
    const place = ([name, value]) => [name, inItsPlace(fields.find(({ id }) => id === name), value)];
    return Object.fromEntries(Object.entries(answer).map(place));
  }
  if (!asked?.bounds || !(answer === null || ["NaN", "Infinity", "-Infinity"].includes(answer))) return answer;
  const [low, high] = asked.bounds.map((bound) => bound[2]);
  return { Infinity: 1e300, "-Infinity": -1e300 }[answer] ?? (low + high) / 2;
}

function outcome(code, work) {
  try {
    return work();
  } catch (error) {
    if (error.code !== code) throw error;
    return { refused: error.field };
  }
}

const differs = (entry, found) =>
  Object.keys(found).some((name) => JSON.stringify(found[name]) !== JSON.stringify(entry[name]));

async function mechanismFailures({ studies, draws }, isOlder = true) {
  const failures = [];
  const questions = {};
  const mechanisms = {};
  for (const [name, { study, integers }] of Object.entries(studies)) {
    [questions[name]] = (await parseStudy(JSON.stringify(study))).questions;
    mechanisms[name] = mechanismFor(questions[name]);
    const found = Object.entries(mechanisms[name].integers).map(([key, value]) => [key, String(value)]);
    if (JSON.stringify(found.sort()) !== JSON.stringify(Object.entries(integers).sort())) {
      failures.push(`${name}: ${found}`);
    }
  }
  for (const draw of draws) {
    const stream = streamOf(draw);
    const answer = isOlder ? inItsPlace(questions[draw.study], draw.answer) : decoded(draw.answer);
    const found = outcome("answer", () => ({ payload: hex(mechanisms[draw.study].perturb(answer, stream)) }));
    found.bytes = stream.taken;
    if (differs(draw, found)) failures.push(`${JSON.stringify(draw)}: found ${JSON.stringify(found)}`);
  }
  return failures;
}

async function reportFailures({ reports }) {
  const failures = [];
  for (const entry of reports) {
    const stream = streamOf(entry);
    const study = await parseStudy(JSON.stringify(entry.study));
    const place = ([name, value]) => [name, inItsPlace(study.questions.find(({ id }) => id === name), value)];
    const answers = Object.fromEntries(Object.entries(entry.answers).map(place));
    const { id, secret, body } = await perturbAnswers(study, answers, stream);
    // These vectors are older than secrets: what was drawn stands in the place of the id that is made of it.
    const report = body.replace(id, secret);
    if (differs(entry, { report, bytes: stream.taken })) failures.push(`${entry.seed}: found ${body}`);
    const again = await drawIdentity(recorded(secret));
    if (again.id !== id) failures.push(`${entry.seed}: the id ${id} is not made of its secret`);
  }
  return failures;
}

async function publicFailures({ studies, public: entries }) {
  const failures = await studyFailures({ studies });
  for (const entry of entries) {
    const stream = streamOf(entry);
    const study = await parseStudy(JSON.stringify(entry.study));
    const refused = (error) => (error.code === "answer" ? { refused: error.field } : Promise.reject(error));
    const drawn = perturbAnswers(study, entry.answers, stream).then(({ body }) => ({ report: body }), refused);
    const found = { ...(await drawn), bytes: stream.taken };
    if (differs(entry, found)) failures.push(`${entry.seed}: found ${JSON.stringify(found)}`);
  }
  return failures;
}

async function idFailures({ report_ids }) {
  const failures = [];
  for (const { secret, id } of report_ids) {
    const found = await drawIdentity(recorded(secret));
    if (found.id !== id) failures.push(`${secret}: found ${found.id}`);
  }
  return failures;
}

async function studyOutcome(text) {
  try {
    const study = await parseStudy(text);
    study.questions.forEach(mechanismFor);
    return { canonical: study.canonical, digest: study.digest };
  } catch (error) {
    if (error.code !== "study") throw error;
    return { refused: error.field };
  }
}

async function studyFailures({ studies }) {
  const failures = [];
  for (const entry of studies) {
    const found = await studyOutcome(entry.text);
    if (differs(entry, found)) failures.push(`${entry.name}: found ${JSON.stringify(found)}`);
  }
  return failures;
}

const found = {};
for (const name of only ? [only] : [
  "laplace",
  "gaussian",
  "randomized_response",
  "oue",
  "sue",
  "subset_selection",
  "olh",
  "hadamard",
  "memoized",
  "gaussian_statistics",
  "gaussian_record",
  "sampled_products",
]) {
  found[name] = await mechanismFailures(load(name));
}
if (!only) {
  found.levels = await mechanismFailures(load("levels"), false);
  found.several = await mechanismFailures(load("several"), false);
  found.missing = await mechanismFailures(load("missing"), false);
  found.reports = await reportFailures(load("reports"));
  found.public = await publicFailures(load("public"));
  const { studies, languages } = load("languages");
  found.languages = await publicFailures({ studies, public: languages });
found.report_ids = await idFailures(load("report_ids"));
  found.authors = await studyFailures({ studies: load("authors").authors });
  found.sections = await studyFailures({ studies: load("sections").sections });
  found.channels = await studyFailures({ studies: load("channels").channels });
  found.askers = await studyFailures({ studies: load("askers").askers });
  found.refusable_numbers = await mechanismFailures(load("refusable_numbers"), false);
  found.refusable_numbers.push(...(await studyFailures({ studies: load("refusable_numbers").refusable_numbers })));
  found.refusal = await mechanismFailures(load("refusal"), false);
  found.refusal.push(...(await studyFailures({ studies: load("refusal").refusal })));
  found.studies = await studyFailures(load("studies"));
}
console.log(JSON.stringify(found));
