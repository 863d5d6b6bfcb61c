// Answers a study on each of many ledgers, as fast as it can: node ledger_race.mjs INDEX_JS FOLDER COUNT DOCUMENT.
// Prints a line for each, once it is answered: its number, and the report or why there is none.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [port, folder, count, document] = process.argv.slice(2);
const from = (name) => import(new URL(name, pathToFileURL(port)));
const { openDevice, parseStudy } = await from("index.js");
const { nodeLedger } = await from("ledgers/node.js");
const study = await parseStudy(document);
for (let number = 0; number < Number(count); number++) {
  const ledger = await nodeLedger(join(folder, `${number}.db`));
  const device = await openDevice({ ledger, collector: "http://127.0.0.1:9", maxEpsilon: "4" });
  const said = await device.answer(study, { hours: 3 }).then(({ body }) => body, ({ code }) => code);
  console.log(JSON.stringify([number, said]));
}
