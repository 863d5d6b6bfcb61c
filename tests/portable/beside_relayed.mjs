/** How many requests leave where a report is due that goes through a relay: one line of JSON. */

import { webcrypto } from "node:crypto";
import { move as moveIn, visited } from "../../ldp_client/js/changing.js";
import { fetchStudy } from "../../ldp_client/js/fetching.js";
import { memoryLedger } from "../../ldp_client/js/ledgers/memory.js";
import { send } from "../../ldp_client/js/sending.js";

globalThis.crypto ??= webcrypto;
const COLLECTOR = "https://collector.example";
const HOUR = 36e5;
let now = 20_000 * 24 * HOUR;
Date.now = () => now;
const { publicKey } = await crypto.subtle.generateKey({ name: "X25519" }, false, ["deriveBits"]);
const point = new Uint8Array(await crypto.subtle.exportKey("raw", publicKey));
const keys = btoa(String.fromCharCode(1, 0, 32, ...point, 0, 4, 0, 1, 0, 1));
const channel = { batches: { hours: 1 }, oblivious: { relay: "https://relay.example/x", keys } };
const sent = [];
let meanwhile = () => {};
globalThis.fetch = async (url) => {
  sent.push(new URL(url).host);
  await meanwhile();
  return new Response(null, { status: url.includes("relay") ? 502 : 404 });
};

/** A device with these reports: what it sends when so many milliseconds have passed. */
async function device(...changes) {
  const ledger = memoryLedger();
  const one = (id, more) => ({ study: id, version: 1, digest: "00".repeat(32), id, secret: "aa", body: "{}", state: "queued", invitation: "", publisher: "c", collector: COLLECTOR, origin: COLLECTOR, ...more });
  await ledger.write((memory) => {
    memory.reports = changes.map((more, index) => one(`r${index}`, more));
  });
  const isOwn = ({ origin }) => origin === COLLECTOR;
  const move = (...change) => ledger.write((memory) => moveIn(memory, isOwn, ...change));
  const flush = async (later = 0, options = {}) => {
    now += later;
    sent.length = 0;
    await send({ ...ledger, collector: COLLECTOR, origin: COLLECTOR, isOwn, move }, { attempts: 1, ...options });
    return [...sent];
  };
  const queue = (more) => ledger.write((memory) => memory.reports.push(one("late", more)));
  return { flush, queue, visited: () => ledger.write((memory) => visited(memory)) };
}

const relayed = () => ({ channel, due: now - 5 });
const together = await (await device(relayed(), relayed(), {})).flush();
const alone = await (await device(relayed(), relayed())).flush();
const soon = await device({ channel, due: now + 60_000 }, {});
const minutes = [await soon.flush(), await soon.flush(60_000)];
const behind = await device(relayed());
const jumped = await behind.flush(400 * 24 * HOUR);
const asking = await device(relayed());
await fetchStudy(COLLECTOR, "habits", asking).catch(() => 0);
const fetched = await asking.flush();
// Before it has any report, whatever else it fetches after the study that it will answer.
const fetch = (...ids) => async (one) => {
  for (const id of ids) await fetchStudy(COLLECTOR, id, one).catch(() => 0);
};
const ways = { one: fetch("habits"), another: fetch("habits", "plain"), visited: (one) => one.visited() };
ways.atOnce = (one) => Promise.all(["habits", "plain", "more"].map((id) => fetch(id)(one)));
const before = {};
for (const [name, way] of Object.entries(ways)) {
  const fresh = await device();
  await way(fresh);
  await fresh.queue(relayed());
  before[name] = [await fresh.flush(), await fresh.flush(0.9 * HOUR)];
}
// Another tab fetches the study while one that relays waits to try again.
globalThis.setTimeout = queueMicrotask;
const since = [];
for (const [more, options] of [[{}], [{ state: "withdrawn", body: "", size: 2 }], [{ state: "withdrawn", body: "", size: 2 }, { now: true }]]) {
  const again = await device({ ...relayed(), ...more });
  meanwhile = async () => {
    meanwhile = () => {};
    await fetchStudy(COLLECTOR, "habits", again).catch(() => 0);
  };
  since.push(await again.flush(0, { attempts: 3, ...options }));
  meanwhile = () => {};
}
// In the clear it is never settled: whoever flushes every ten minutes.
const stuck = await device(relayed(), {});
const long = [];
for (let step = 0; step < 400; step++) long.push(new Set(await stuck.flush(6e5)));
// Within an hour: the five before.
const behindIt = long.filter((hosts, step) => hosts.has("collector.example") && long.slice(Math.max(0, step - 5), step).some((one) => one.has("relay.example")));
const both = long.filter(({ size }) => size > 1).length;
const [through, clear] = ["relay", "collector"].map((name) => long.filter((hosts) => hosts.has(`${name}.example`)).length);
console.log(JSON.stringify({ together, alone, minutes, jumped, fetched, before, since, both, seenAfter: behindIt.length, turns: [through > 0, clear > 0] }));
