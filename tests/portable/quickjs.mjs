// Answers studies in QuickJS and in node, both from the same recorded bytes: node quickjs.mjs BUNDLE DOCUMENTS ANSWERS.
// Prints [QuickJS's reports, node's], as JSON. QuickJS has the language alone: what apps give it stands in SHIMS.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import variant from "@jitl/quickjs-wasmfile-release-sync";
import { newQuickJSWASMModuleFromVariant } from "quickjs-emscripten-core";

const [bundle, documents, answers] = process.argv.slice(2);

const SHIMS = `
globalThis.TextEncoder = class {
  encode(text) { return Uint8Array.from(unescape(encodeURIComponent(text)), (letter) => letter.charCodeAt()); }
};
globalThis.crypto = {
  subtle: { digest: async (_, bytes) => Uint8Array.from(JSON.parse(sha256(JSON.stringify([...bytes])))).buffer },
};
globalThis.btoa = (text) => base64(JSON.stringify([...text].map((letter) => letter.charCodeAt())));
`;
// A counter's digests, as recorded bytes: both engines are given the same.
const ANSWER = `
const stream = (seed) => {
  let counter = 0;
  const random = (size) => {
    const bytes = [];
    while (bytes.length < size) bytes.push(...JSON.parse(sha256(JSON.stringify([seed, counter >> 8, counter++ & 255]))));
    return Uint8Array.from(bytes.slice(0, size));
  };
  return Object.assign(random, { forTests: true });
};
async function answerAll(documents, answers) {
  const { memoryLedger, openDevice, parseStudy } = ldpkit;
  const ledger = memoryLedger();
  const said = [];
  for (const [place, document] of documents.entries()) {
    const study = await parseStudy(JSON.stringify(document));
    const options = { maxEpsilon: "1000", collector: "https://collect.example.org", ledger, random: stream(place) };
    const device = await openDevice(options);
    const { body } = await device.answer(study, answers[place]);
    said.push(body, await device.answer(study, answers[place]).catch(({ code }) => code), await device.epsilonLeft());
  }
  return said;
}
`;
const code = readFileSync(bundle, "utf8") + ANSWER;
const sha256 = (text) => JSON.stringify([...createHash("sha256").update(Uint8Array.from(JSON.parse(text))).digest()]);
const base64 = (text) => Buffer.from(JSON.parse(text)).toString("base64");

async function inQuickJS() {
  const module = await newQuickJSWASMModuleFromVariant(variant);
  const context = module.newContext();
  for (const [name, work] of Object.entries({ sha256, base64 })) {
    const host = context.newFunction(name, (text) => context.newString(work(context.getString(text))));
    context.setProp(context.global, name, host);
  }
  const script = `${SHIMS}${code}
    answerAll(${documents}, ${answers}).then((all) => (said = JSON.stringify(all)), (error) => (said = String(error)));
    var said;`;
  context.unwrapResult(context.evalCode(script));
  context.runtime.executePendingJobs();
  return JSON.parse(context.getString(context.getProp(context.global, "said")));
}

globalThis.sha256 = sha256;
const inNode = await new Function(`${code}; return answerAll(${documents}, ${answers});`)();
console.log(JSON.stringify([await inQuickJS(), inNode]));
