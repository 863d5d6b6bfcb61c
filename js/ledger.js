/**
 * The device's memory in IndexedDB; ledgers/ has it elsewhere. It is one record, read and written in one transaction
 * that is durable before it is reported, so that a report can never leave without its spend. Any trouble with the storage
 * is an LdpkitError "ledger": a device that cannot read its past refuses to answer.
 */

import { orElse } from "./errors.js";

const unusable = orElse("ledger");
const STORE = "ledger";

/**
 * Return {name, read, write} of the ledger of that name: Ledger of index.d.ts.
 *
 * memory: {spent: [{origin, study, question, version, digest, epsilon, delta, asked (the question's text), title, owner,
 * days}], permanent: [{origin, study, question, noise, answer}], reports: [StoredReport of index.d.ts],
 * drawn: [{digest, question}]}. origin: the collector's. epsilon, delta: missing if the question was not drawn.
 */
export async function openLedger(name) {
  const database = await open(name).catch(unusable);
  database.onversionchange = () => database.close();

  const run = (isKept) => (work) =>
    new Promise((resolve, reject) => {
      const transaction = database.transaction(STORE, isKept ? "readwrite" : "readonly", { durability: "strict" });
      const store = transaction.objectStore(STORE);
      let result;
      store.get(0).onsuccess = ({ target: { result: memory } }) => {
        try {
          result = work(memory);
          if (isKept) store.put(memory, 0);
        } catch (error) {
          reject(error);
          transaction.abort();
        }
      };
      transaction.oncomplete = () => resolve(result);
      transaction.onabort = () => reject(transaction.error);
    }).catch(unusable);
  return { name, read: run(), write: run(true) };
}

const open = (name) =>
  new Promise((resolve, reject) => {
    // One layout, which is version 1: a later one fails to open, and answers nothing.
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () =>
      request.result.createObjectStore(STORE).put({ spent: [], permanent: [], reports: [], drawn: [] }, 0);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
