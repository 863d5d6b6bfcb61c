/**
 * The device's memory in IndexedDB: what was answered, what it cost, and the reports.
 *
 * A spend and its report are written in one transaction, durable before `record` returns, so that a
 * report can never leave without its spend. Any trouble with the storage is an LdpkitError "ledger":
 * a device that cannot read its past refuses to answer.
 */

import { LdpkitError, fail } from "./errors.js";
import { add, isBelow } from "./rational.js";

const LAYOUT = 1;
const STORES = ["spent", "reports"];

/**
 * The ledger of that name, made when missing.
 *
 * A spend is {study, question, version, epsilon}, a report {id, study, version, body, state}.
 */
export async function openLedger(name) {
  const database = await open(name).catch(unusable);
  database.onversionchange = () => database.close();

  async function transact(mode, work) {
    try {
      const transaction = database.transaction(STORES, mode, { durability: "strict" });
      return await durable(transaction, work(...STORES.map((store) => transaction.objectStore(store))));
    } catch (error) {
      return unusable(error);
    }
  }

  /** Every spend. */
  const spent = () => transact("readonly", (spends) => finished(spends.getAll()));

  /** Every report that is not deleted yet. */
  const reports = () => transact("readonly", (_, reports) => finished(reports.getAll()));

  /** Write spends and report together, or throw "answered" or "budget" and write nothing. */
  const record = (spends, report, budget) =>
    transact("readwrite", async (spent, reports) => {
      const before = await finished(spent.getAll());
      refuseSecondAnswers(before, spends);
      const total = totalOf([...before, ...spends]);
      if (isBelow(budget, total)) fail("budget", "answering would exceed the privacy budget");
      for (const spend of spends) spent.add(spend);
      reports.add(report);
    });

  /**
   * Change a report by {state it is in: what to change}, null to delete it, and return what it then is.
   * A report in another state stays as it is.
   */
  const move = (id, changes) =>
    transact("readwrite", async (_, reports) => {
      const report = await finished(reports.get(id));
      const change = changes[report?.state];
      if (change === null) return finished(reports.delete(id));
      if (change) reports.put(Object.assign(report, change));
      return report;
    });

  return { spent, reports, record, move };
}

async function open(name) {
  const request = indexedDB.open(name, LAYOUT);
  request.onupgradeneeded = () => {
    request.result.createObjectStore("spent", { keyPath: ["study", "question"] });
    request.result.createObjectStore("reports", { keyPath: "id" });
  };
  return finished(request);
}

/** The result of the work once its transaction is on disk; after an error nothing of it is kept. */
const durable = (transaction, result) =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(result);
    transaction.onabort = () => reject(transaction.error);
    result.catch((error) => {
      reject(error);
      if (!transaction.error) transaction.abort();
    });
  });

const finished = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

function unusable(error) {
  throw error instanceof LdpkitError ? error : new LdpkitError("ledger", `unusable: ${error?.message}`);
}

/** The sum of spends, exactly. */
export const totalOf = (spends) => spends.map(({ epsilon }) => epsilon).reduce(add, [0n, 1n]);

function refuseSecondAnswers(before, spends) {
  for (const { study, question } of spends) {
    const answered = before.some((spend) => spend.study === study && spend.question === question);
    if (answered) fail("answered", "this device has answered it before", question);
  }
}
