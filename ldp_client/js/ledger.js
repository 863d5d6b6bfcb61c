/**
 * The device's memory in IndexedDB: what was asked, what it cost, permanent answers, and the reports.
 *
 * What belongs together is written in one transaction, durable before it is reported, so that a report
 * can never leave without its spend. Any trouble with the storage is an LdpkitError "ledger": a device
 * that cannot read its past refuses to answer.
 */

import { LdpkitError } from "./errors.js";

const LAYOUT = 2;
const BY_QUESTION = ["study", "question"];
// Layout 1 had no permanent answers.
const STORES = { spent: BY_QUESTION, permanent: BY_QUESTION, reports: "id" };

/**
 * The ledger of that name, made when missing: a function (mode, work) that returns work(rows, stores), once
 * all that it wrote is on disk. rows: every row of each store; stores: IndexedDB's own, to write to.
 *
 * A spend is {study, question, version, epsilon}, a permanent answer {study, question, fingerprint,
 * answer}, a report {id, study, version, body, state, invitation}. After an error nothing is kept.
 */
export async function openLedger(name) {
  const database = await open(name).catch(unusable);
  database.onversionchange = () => database.close();
  return async (mode, work) => {
    try {
      const transaction = database.transaction(Object.keys(STORES), mode, { durability: "strict" });
      return await durable(transaction, readAll(transaction, work));
    } catch (error) {
      return unusable(error);
    }
  };
}

async function readAll(transaction, work) {
  const [rows, stores] = [{}, {}];
  for (const name in STORES) {
    stores[name] = transaction.objectStore(name);
    rows[name] = await finished(stores[name].getAll());
  }
  return work(rows, stores);
}

async function open(name) {
  const request = indexedDB.open(name, LAYOUT);
  request.onupgradeneeded = ({ oldVersion }) => {
    for (const name in STORES) {
      if (!oldVersion || name === "permanent") request.result.createObjectStore(name, { keyPath: STORES[name] });
    }
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
