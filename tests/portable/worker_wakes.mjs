// A browser wakes the participant's page's service worker: node worker_wakes.mjs WORKER. Two reports wait, one of them in
// batches. Prints the hosts and methods of the worker's requests, as JSON.
import { pathToFileURL } from "node:url";

const COLLECTOR = "https://collector.example";
const [worker] = process.argv.slice(2);

const report = (id, more) => ({ id: id.repeat(32), study: id, version: 1, digest: id, secret: "00", body: "{}", state: "queued", ticket: "", closes: "", collector: COLLECTOR, origin: COLLECTOR, ...more });
const channel = { batches: { hours: 24 } };
let kept = { spent: [], permanent: [], drawn: [], reports: [report("a", { channel, due: Date.now() - 1000 }), report("b")] };

/** A request of IndexedDB's whose result is there a little later. */
function soon(result, after = () => {}) {
  const request = {};
  setTimeout(() => {
    request.result = result();
    request.onsuccess?.({ target: request });
    setTimeout(after);
  });
  return request;
}
const transaction = () => {
  const one = {};
  one.abort = () => one.onabort?.();
  one.objectStore = () => ({ get: () => soon(() => structuredClone(kept), () => one.oncomplete?.()), put: (memory) => (kept = structuredClone(memory)) });
  return one;
};
globalThis.indexedDB = { open: () => soon(() => ({ close() {}, transaction })) };
Object.defineProperty(globalThis, "navigator", { value: { locks: { request: (...given) => given.at(-1)({}) } }, configurable: true });
globalThis.location = new URL(COLLECTOR);
const handlers = {};
globalThis.addEventListener = (kind, handler) => (handlers[kind] = handler);
const asked = [];
globalThis.registration = { unregister: async () => void asked.push("unregistered") };
globalThis.fetch = async (url, { method }) => {
  asked.push(`${method} ${new URL(url).host}`);
  const headers = { "Content-Type": "application/json" };
  return new Response(JSON.stringify({ id: url.split("/").at(-1), result: "stored" }), { status: 201, headers });
};

await import(pathToFileURL(worker));
let work;
handlers.sync({ waitUntil: (its) => (work = its) });
await work;
console.log(JSON.stringify(asked));
