// Answers a study on each of many ledgers, as fast as it can: node ledger_race.mjs FOLDER COUNT DOCUMENT.
// Prints a line for each, once it is answered: its number, and the report or why there is none.
import { join } from "node:path";
import { openDevice, parseStudy } from "../../js/index.js";
import { nodeLedger } from "../../js/ledgers/node.js";

const [folder, count, document] = process.argv.slice(2);
const study = await parseStudy(document);
for (let number = 0; number < Number(count); number++) {
  const ledger = await nodeLedger(join(folder, `${number}.db`));
  const device = await openDevice({ ledger, collector: "http://127.0.0.1:9", maxEpsilon: "4" });
  const said = await device.answer(study, { hours: 3 }).then(({ body }) => body, ({ code }) => code);
  console.log(JSON.stringify([number, said]));
}
