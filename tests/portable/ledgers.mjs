// What every ledger of the npm package has to do: node ledgers.mjs INDEX_JS KIND FILE COLLECTOR DOCUMENTS.
// Prints what was found, as JSON.
import { pathToFileURL } from "node:url";
import { standIn } from "./expo_stand_in.mjs";

const [port, kind, file, collector, documents] = process.argv.slice(2);
const from = (name) => import(new URL(name, pathToFileURL(port)));
const { openDevice, parseStudy } = await from("index.js");
const studies = await Promise.all(JSON.parse(documents).map((text) => parseStudy(JSON.stringify(text))));
const [numbers, bits, dear, clear] = studies;

const shared = kind === "memory" && (await from("ledgers/memory.js")).memoryLedger();
const open = {
  memory: async () => shared,
  node: async () => (await from("ledgers/node.js")).nodeLedger(file),
  expo: async () => (await from("ledgers/expo.js")).expoLedger(standIn(file)),
}[kind];
const ledger = await open();
// As another process has it, where there can be one.
const again = await open();
const device = await openDevice({ ledger, collector, maxEpsilon: "20" });
const other = await openDevice({ ledger: again, collector, maxEpsilon: "20" });
const code = (work) => work.then(() => "done", ({ code }) => code);
const found = {};

const raced = await Promise.all([device, other].map((its) => code(its.answer(numbers, { hours: 3 }))));
found.raced = raced.sort();
const { report } = await other.status(numbers);
found.same = JSON.stringify(report) === JSON.stringify((await device.status(numbers)).report);
found.again = await code(other.answer(numbers, { hours: 4 }));
found.unchanged = (await device.status(numbers)).report.body === report.body;
found.left = [await device.epsilonLeft(), await other.epsilonLeft()];

// A permanent answer comes back as the bytes that it was.
await device.answer(bits, { brand: "worker" });
const kept = (its) => its.read(({ permanent }) => permanent.map(({ answer }) => [answer.constructor.name, ...answer]));
found.permanent = [await kept(ledger), await kept(again)];
found.exact = await again.read(({ spent }) => spent.every(({ epsilon: [n, d] }) => typeof n + typeof d === "bigintbigint"));
found.budget = await code(other.answer(dear, { hours: 3 }));

// Neither half of what was not finished stays.
found.thrown = await code(ledger.write((memory) => { memory.reports.length = 0; throw new Error("3 hours"); }));
found.unwritten = await code(ledger.write((memory) => { memory.reports = [memory]; }));
found.reports = await again.read(({ reports }) => reports.length);

let inside = 0;
found.most = 0;
const work = async () => {
  found.most = Math.max(found.most, ++inside);
  await new Promise((resolve) => setTimeout(resolve, 5));
  inside--;
};
const failed = ledger.alone(async () => { await work(); throw new Error("failed"); });
await Promise.allSettled([failed, ...Array.from({ length: 6 }, (_, turn) => [ledger, again][turn % 2].alone(work))]);

await device.consent(numbers);
await Promise.all([device.flush({ attempts: 1 }), other.flush({ attempts: 1 })]);
found.states = [(await other.status(numbers)).report.state, (await device.status(bits)).report.state];
found.bodies = [report.body];
found.withdrawn = await other.withdraw("survey");
// A look and what came of it: for the report that waits alone, however many a panel of years has kept.
found.writes = 0;
const counted = { ...again, write: (change) => again.write((memory) => { found.writes++; return change(memory); }) };
const looking = await openDevice({ ledger: counted, collector, maxEpsilon: "20" });
found.writes = 0;
await looking.flush({ attempts: 1 });
found.gone = (await device.status(numbers)).report === undefined;
found.told = (await other.told()).studies.map(({ study }) => study);

// What was asked behind noise is read back, to see that it does not leave in clear.
found.clear = await code(device.answer(clear, { hours: 3, region: "north" }));
found.agreed = (await other.consent(clear)).state;
console.log(JSON.stringify(found));
