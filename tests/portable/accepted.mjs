// What a device of the npm package takes: node accepted.mjs INDEX_JS CASES NOW. Prints codes, and what was kept, as JSON.
import { pathToFileURL } from "node:url";

const [port, cases, now] = process.argv.slice(2);
const from = (name) => import(new URL(name, pathToFileURL(port)));
const { openDevice, parseStudy } = await from("index.js");
const { memoryLedger } = await from("ledgers/memory.js");
const { invitations, days, numbers } = JSON.parse(cases);

class Fixed extends Date {
  constructor(...given) {
    super(...(given.length ? given : [+now]));
  }
  static now() {
    return +now;
  }
}
globalThis.Date = Fixed;

const code = (work) => work.then(() => "done", (error) => error.code ?? String(error));
const open = () => openDevice({ ledger: memoryLedger(), collector: "https://c.example", maxEpsilon: "9" });
const read = (document) => parseStudy(JSON.stringify(document));

/** What is kept of an invitation that was given with the answer, and of one that was given after it. */
async function kept(document, given) {
  const device = await open();
  const study = await read(document);
  const found = [await code(device.answer(study, { ever: true }, given))];
  if (found[0] === "done") found.push((await device.status(study)).report.invitation);
  else await device.answer(study, { ever: true });
  found.push(await code(device.invite(study.id, given)), (await device.status(study)).report.invitation);
  return found;
}

const found = { invitations: [], days: [], numbers: [] };
for (const given of invitations.given) found.invitations.push(await kept(invitations.study, given));
for (const one of days) found.days.push(await code((await open()).answer(await read(one), { ever: true })));
for (const given of numbers.given) {
  const device = await open();
  const study = await read(numbers.study);
  const outcome = await code(device.answer(study, { ever: true, age: BigInt(given) }));
  found.numbers.push(outcome === "done" ? JSON.parse((await device.status(study)).report.body).public.age : outcome);
}
console.log(JSON.stringify(found));
