// The JavaScript port, as conformance/run.py asks it: node conformance/javascript.mjs
import { webcrypto } from "node:crypto";
import { createInterface } from "node:readline";
import { mechanismFor, parseStudy } from "../js/index.js";
import { drawIdentity } from "../js/report.js";

globalThis.crypto ??= webcrypto;
const STUDY = { format: "ldpkit.study/1", id: "survey", version: 1, title: "A survey" };

/** Recorded bytes, and how many of them were read. */
function recorded(hex) {
  const bytes = Uint8Array.from(Buffer.from(hex, "hex"));
  const source = (size) => bytes.slice(source.taken, (source.taken += size));
  return Object.assign(source, { taken: 0, forTests: true });
}

async function draw({ question, answer, random, protocol }) {
  // Secret sums leave devices that have the library of keys: no browser.
  if (protocol) return { unsupported: true };
  const study = await parseStudy(JSON.stringify({ ...STUDY, questions: [question] }));
  const source = recorded(random);
  try {
    const payload = Buffer.from(mechanismFor(study.questions[0]).perturb(answer, source)).toString("hex");
    return { payload, bytes: source.taken };
  } catch (error) {
    if (error.code !== "answer") throw error;
    return { refused: error.field, bytes: source.taken };
  }
}

const KINDS = {
  draw,
  id: async ({ secret }) => ({ id: (await drawIdentity(recorded(secret))).id }),
  digest: async ({ text }) => ({ digest: (await parseStudy(text)).digest }),
};
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  console.log(JSON.stringify(await (KINDS[asked.kind]?.(asked) ?? { unsupported: true })));
}
