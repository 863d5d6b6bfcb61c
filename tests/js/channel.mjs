// A device of the npm package does one step after the other, by a clock that it is told:
// node channel.mjs FILE COLLECTOR DOCUMENT STEPS [RELAY]. Prints what each step gave, as JSON. RELAY: the options of
// `oblivious`, if all requests go through a relay.
import { fetchStudy, oblivious, openDevice, parseStudy } from "../../js/index.js";
import { nodeLedger } from "../../js/ledgers/node.js";

const [file, collector, document, steps, relay] = process.argv.slice(2);
const transport = relay && (await oblivious(JSON.parse(relay)));
const study = await parseStudy(document);
let now = Date.now();
Date.now = () => now;

/** As the program has it that was started again: nothing is left but the ledger. */
const device = async () => openDevice({ ledger: await nodeLedger(file), collector, maxEpsilon: "20", ...(transport && { transport }) });
const report = async () => (await (await device()).status(study)).report;
const STEPS = {
  answer: async (answers, code) => (await (await device()).answer(study, answers, code)).state,
  consent: async () => (await (await device()).consent(study)).state,
  flush: async () => {
    await (await device()).flush({ attempts: 1 });
    return (await report())?.state ?? "gone";
  },
  withdraw: async () => (await device()).withdraw(study.id),
  fetched: async () => (await fetchStudy(await device(), study.id)).id,
  report,
  due: async () => (now = (await report()).due),
};
const found = [];
for (const [name, ...values] of JSON.parse(steps)) found.push((await STEPS[name](...values)) ?? null);
console.log(JSON.stringify(found, (_, value) => (typeof value === "bigint" ? `${value}` : value)));
