// Runs files of the test vectors on the JavaScript port: node run_vectors.mjs INDEX_JS FOLDER NAME…
// Prints {file: entries that the port makes otherwise}, as JSON.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { perturbingBy } from "./perturbing.mjs";

const [port, folder, ...names] = process.argv.slice(2);
const { mechanismFor, parseStudy } = await import(pathToFileURL(port));
const perturbAnswers = await perturbingBy(pathToFileURL(port));
const { drawIdentity } = await import(new URL("report.js", pathToFileURL(port)));
const hex = (bytes) => Buffer.from(bytes).toString("hex");

/** Bytes that are fixed by head and seed; `taken`: how many were read. */
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
  return Object.assign(stream, { taken: 0, forTests: true });
}

/** In an answer these strings stand for numbers that JSON lacks. */
const decoded = (answer) => {
  if (answer !== null && typeof answer === "object" && !Array.isArray(answer)) {
    return Object.fromEntries(Object.entries(answer).map(([name, value]) => [name, decoded(value)]));
  }
  return ["NaN", "Infinity", "-Infinity"].includes(answer) ? Number(answer) : answer;
};

/** What the work gives, or the field of an error with this code. */
const refusable = (code, work) => work().catch((error) => (error.code === code ? { refused: error.field } : Promise.reject(error)));

const KINDS = {
  text: ({ text }) => refusable("study", async () => {
    const study = await parseStudy(text);
    study.questions.forEach(mechanismFor);
    return { canonical: study.canonical, digest: study.digest };
  }),
  answers: async ({ study: document, answers, seed }) => {
    const stream = streamOf({ seed });
    const study = await parseStudy(JSON.stringify(document));
    const found = await refusable("answer", async () => ({ report: (await perturbAnswers(study, answers, stream)).body }));
    return { ...found, bytes: stream.taken };
  },
  secret: async ({ secret }) => {
    const { id } = await drawIdentity(Object.assign(() => Buffer.from(secret, "hex"), { forTests: true }));
    return { id };
  },
};

async function differences(vectors) {
  const wrong = [];
  const note = (entry, found) => {
    const differs = Object.keys(found).some((name) => JSON.stringify(found[name]) !== JSON.stringify(entry[name]));
    if (differs) wrong.push(`${JSON.stringify(entry)}: found ${JSON.stringify(found)}`);
  };
  const mechanisms = {};
  for (const [name, { study, integers }] of Array.isArray(vectors.studies) ? [] : Object.entries(vectors.studies ?? {})) {
    const { questions } = await parseStudy(JSON.stringify(study));
    mechanisms[name] = mechanismFor(questions[0]);
    const sorted = (entries) => Object.entries(entries).map(([key, value]) => [key, String(value)]).sort();
    note({ integers: sorted(integers) }, { integers: sorted(mechanisms[name].integers) });
  }
  for (const [key, entries] of Object.entries(vectors).filter(([, value]) => Array.isArray(value))) {
    for (const entry of entries) {
      if (key === "draws") {
        const stream = streamOf(entry);
        const perturb = async () => ({ payload: hex(mechanisms[entry.study].perturb(decoded(entry.answer), stream)) });
        const found = await refusable("answer", perturb);
        note(entry, { ...found, bytes: stream.taken });
      } else {
        note(entry, await KINDS[Object.keys(KINDS).find((kind) => kind in entry)](entry));
      }
    }
  }
  return wrong;
}

const found = {};
for (const name of names) found[name] = await differences(JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8")));
console.log(JSON.stringify(found));
