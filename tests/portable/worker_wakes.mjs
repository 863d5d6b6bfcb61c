// A browser wakes the participant's page's service worker: node worker_wakes.mjs WORKER LEDGER EVENTS.
// LEDGER: the hours until a report may leave through a relay (null: there is none), whether one in the clear waits too, and
// the hours since the worker looked for a newer one (null: unknown). EVENTS: [[kind, hour], …]. Prints what was asked for
// then, as JSON.
import { pathToFileURL } from "node:url";

const HOUR = 36e5;
const start = Date.UTC(2026, 0, 5, 8);
const COLLECTOR = "https://collector.example";
const RELAY = "https://relay.example/x";
const [worker, ledger, events] = process.argv.slice(2);
const { hours, isPlainToo, looked } = JSON.parse(ledger);
let now = start;
Date.now = () => now;

const { publicKey } = await crypto.subtle.generateKey({ name: "X25519" }, true, ["deriveBits"]);
const point = new Uint8Array(await crypto.subtle.exportKey("raw", publicKey));
const keys = btoa(String.fromCharCode(1, 0, 32, ...point, 0, 4, 0, 1, 0, 1));
const report = (id, more) => ({ id: id.repeat(32), study: id, version: 1, digest: id, secret: "00", body: "{}", state: "queued", invitation: "", closes: "", collector: COLLECTOR, origin: COLLECTOR, publisher: "c", ...more });
const channel = { batches: { hours: 24 }, oblivious: { relay: RELAY, keys } };
let kept = {
  spent: [],
  permanent: [],
  drawn: [],
  reports: [
    ...(hours === null ? [] : [report("a", { channel, due: start + hours * HOUR })]),
    ...(isPlainToo ? [report("b", { reason: "unreachable" })] : []),
  ],
  apart: start + 1.5 * HOUR,
  ...(looked === null ? {} : { looked: start - looked * HOUR }),
};

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
let asked = [];
globalThis.registration = { update: async () => void asked.push("worker"), unregister: async () => {} };
globalThis.fetch = async (url, { method }) => {
  if (url === RELAY) {
    asked.push("relay");
    return new Response(null, { status: 502 });
  }
  asked.push(method);
  const headers = { "Content-Type": "application/json", "LDPKit-Collector": "c" };
  return new Response(JSON.stringify({ id: url.split("/").at(-1), result: "stored" }), { status: 201, headers });
};

const found = [];
for (const [kind, hour] of JSON.parse(events)) {
  now = start + hour * HOUR;
  // Each time it begins anew, as browsers end workers.
  await import(`${pathToFileURL(worker)}?${kind}${hour}`);
  let work;
  handlers[kind]({ waitUntil: (its) => (work = its) });
  await work.catch(() => {});
  found.push([...new Set(asked)]);
  asked = [];
}
console.log(JSON.stringify(found));
