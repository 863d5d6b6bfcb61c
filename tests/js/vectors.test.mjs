/** The vectors of tests/golden: one stream of random bytes gives the same report as in Python. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { mechanismFor, parseStudy } from "../../js/index.js";
import { drawIdentity, drawPayloads, reportOf } from "../../js/report.js";
import { golden, read } from "./support.mjs";

// Addresses are read by device.test.mjs. Shares are sealed with what browsers do not offer: `protocol` is refused by name.
const OTHERS = ["origins", "summed_gaussian", "pieces"];
const FILES = readdirSync(new URL("../golden/vectors", import.meta.url)).map((name) => name.replace(".json", ""));

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

/** An answer with the numbers that JSON lacks, for which strings stand. */
const decoded = (answer) => {
  if (Object(answer) !== answer || Array.isArray(answer)) return ["NaN", "Infinity", "-Infinity"].includes(answer) ? Number(answer) : answer;
  return Object.fromEntries(Object.entries(answer).map(([name, value]) => [name, decoded(value)]));
};

/** What the work gives, or the field of an error with this code. */
const refusable = (code, work) => work().catch((error) => (error.code === code ? { refused: error.field } : Promise.reject(error)));

/** What comes of an entry, by a key that entries of its kind have. */
const KINDS = {
  text: ({ text }) => refusable("study", async () => {
    const study = await parseStudy(text);
    study.questions.forEach(mechanismFor);
    return { canonical: study.canonical, digest: study.digest };
  }),
  answer: async ({ answer, study, ...entry }, mechanisms) => {
    const stream = streamOf(entry);
    const perturb = async () => ({ payload: Buffer.from(mechanisms[study].perturb(decoded(answer), stream)).toString("hex") });
    return { ...(await refusable("answer", perturb)), bytes: stream.taken };
  },
  answers: async ({ study: document, answers, seed }) => {
    const stream = streamOf({ seed });
    const study = await read(document);
    const found = await refusable("answer", async () => {
      const drawn = drawPayloads(study, answers, stream, study.questions.map(mechanismFor));
      return { report: reportOf(study, drawn, await drawIdentity(stream)).body };
    });
    return { ...found, bytes: stream.taken };
  },
  secret: async ({ secret }) => {
    const { id } = await drawIdentity(Object.assign(() => Buffer.from(secret, "hex"), { forTests: true }));
    return { id };
  },
};

for (const name of FILES.filter((file) => !OTHERS.includes(file))) {
  test(`the same comes of the vectors as in Python: ${name}`, async () => {
    const { studies = [], ...lists } = golden(`vectors/${name}`);
    const mechanisms = {};
    if (Array.isArray(studies)) lists.studies = studies;
    else {
      for (const [key, { study, integers }] of Object.entries(studies)) {
        const { questions } = await read(study);
        mechanisms[key] = mechanismFor(questions[0]);
        const texts = Object.entries(mechanisms[key].integers).map(([integer, value]) => [integer, String(value)]);
        assert.deepEqual(Object.fromEntries(texts), integers);
      }
    }
    for (const entry of Object.values(lists).filter(Array.isArray).flat()) {
      const kind = Object.keys(KINDS).find((key) => key in entry);
      const found = await KINDS[kind](entry, mechanisms);
      assert.deepEqual(found, Object.fromEntries(Object.keys(found).map((key) => [key, entry[key]])), JSON.stringify(entry));
    }
  });
}
