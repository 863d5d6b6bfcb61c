// A device of the npm package does one step after the other, by a clock that it is told:
// node channel.mjs INDEX_JS KIND FILE COLLECTOR DOCUMENT STEPS [RELAY]. Prints what each step gave, as JSON. RELAY: the
// options of `oblivious`, if all requests go through a relay.
import { pathToFileURL } from "node:url";
import { standIn } from "./expo_stand_in.mjs";

const [port, kind, file, collector, document, steps, relay] = process.argv.slice(2);
const from = (name) => import(new URL(name, pathToFileURL(port)));
const { openDevice, parseStudy } = await from("index.js");
const shared = kind === "memory" && (await from("ledgers/memory.js")).memoryLedger();
const open = {
  memory: async () => shared,
  node: async () => (await from("ledgers/node.js")).nodeLedger(file),
  expo: async () => (await from("ledgers/expo.js")).expoLedger(standIn(file)),
}[kind];
const transport = relay && (await (await from("oblivious.js")).oblivious(JSON.parse(relay)));
const study = await parseStudy(document);
let now = Date.now();
Date.now = () => now;

/** As the program has it that was started again: nothing is left but the ledger. */
const device = async () => openDevice({ ledger: await open(), collector, maxEpsilon: "20", ...(transport && { transport }) });
const report = async () => (await (await device()).status(study)).report;
const STEPS = {
  answer: async (answers, code) => (await (await device()).answer(study, answers, code)).state,
  consent: async () => (await (await device()).consent(study)).state,
  flush: async (attempts = 1, isNow = false) => {
    await (await device()).flush({ attempts, now: isNow });
    return (await report())?.state ?? "gone";
  },
  invite: async (code) => (await device()).giveTicket(study.id, code),
  withdraw: async () => (await device()).withdraw(study.id),
  fetched: async () => (await (await from("fetching.js")).fetchStudy(await device(), study.id)).id,
  left: async () => (await device()).epsilonLeft(),
  report,
  told: async () => (await device()).told(),
  /** Of what kind a cost and a permanent answer are. */
  ledger: async () =>
    (await open()).read(({ spent, permanent }) => [typeof spent[0].epsilon[0], permanent[0].answer.constructor.name]),
  /** Perhaps a while before or after that. */
  due: async (beside = 0) => (now = (await report()).due + beside),
  at: async (moment) => (now = moment),
  /** The person does that while the next request is on its way. */
  meanwhile: async (step) => {
    const { fetch } = globalThis;
    globalThis.fetch = async (...request) => {
      globalThis.fetch = fetch;
      const answer = await fetch(...request);
      await STEPS[step]();
      return answer;
    };
  },
};
const found = [];
for (const [name, ...values] of JSON.parse(steps)) found.push((await STEPS[name](...values)) ?? null);
console.log(JSON.stringify(found, (_, value) => (typeof value === "bigint" ? `${value}` : value)));
