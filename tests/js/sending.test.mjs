/** Reports and deletions are sent, retried and settled. */
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { fetchStudy } from "../../js/index.js";
import { viewOf } from "../../js/randomness.js";
import { canonicalJson, parseJson } from "../../js/json.js";
import {
  COLLECTOR, Collector, DAY_MS, NUMBER, YES_NO, device, memoryLedger, openDevice, outcome, read, study,
} from "./support.mjs";

Math.random = () => 0;
const ASKED = await read(study(YES_NO));
const OTHER = await read(study(NUMBER, { id: "other" }));

const ROW = { study: "s", version: 1, digest: "d", secret: "aa", origin: COLLECTOR, collector: COLLECTOR };
const rowOf = (id) => ({ ...ROW, id, ...(id < "c" ? { body: "{}", state: "queued" } : { body: "", state: "withdrawn" }) });

/** A device that has agreed to its report, its ledger and its collector. */
async function agreed(asked = ASKED, { collector = new Collector(ASKED, OTHER), ticket = "", ...more } = {}) {
  const ledger = memoryLedger();
  const one = await device({ ledger, transport: collector.transport, ...more });
  const report = await one.answer(asked, asked === OTHER ? { hours: 3 } : { ever: true }, ticket);
  await one.consent(asked);
  const flush = async (attempts = 1) => {
    await one.flush({ attempts });
    return (await one.status(asked)).report;
  };
  return { one, ledger, collector, report, flush };
}

test("retries send the same bytes with full jitter", async () => {
  const { collector, report, flush } = await agreed();
  collector.next = [503, 429, 500, 425];
  const pauses = [];
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (work, delay) => (pauses.push(delay), setTimeout(work, 0));
  Math.random = () => 0.5;
  const { state } = await flush(5);
  Math.random = () => 0;
  globalThis.setTimeout = setTimeout;
  assert.deepEqual([state, pauses], ["sent", [500, 1000, 2000, 4000]]);
  assert.deepEqual(collector.requests.map(({ body }) => body), Array(5).fill(report.body));
});

test("a report that nothing answers waits and is sent later with the same bytes", async () => {
  const { collector, report, flush } = await agreed();
  collector.next = ["lost"];
  const waits = await flush();
  assert.deepEqual([waits.state, waits.reason, waits.body], ["queued", "unreachable", report.body]);
  const sent = await flush();
  assert.deepEqual([sent.state, sent.reason, collector.requests.length], ["sent", "", 2]);
  await flush();
  assert.deepEqual(collector.requests.map(({ body }) => body), [report.body, report.body]);
  assert.match(collector.requests[0].url, /^https:\/\/collector\.example\/v1\/studies\/survey\/reports\/[0-9a-f]{32}$/);
});

test("every request is tried once before any retry", async () => {
  // A deletion that is never acknowledged holds no upload of another study up.
  const { one, collector, flush } = await agreed();
  await flush();
  assert.equal(await one.withdraw("survey"), 1);
  await one.answer(OTHER, { hours: 3 });
  await one.consent(OTHER);
  collector.next = [503, 503];
  await flush(3);
  assert.deepEqual(collector.methods.sort(), ["DELETE", "DELETE", "PUT", "PUT", "PUT"]);
  assert.equal((await one.status(OTHER)).report.state, "sent");
});

test("an overloaded server gets one request per attempt", async () => {
  for (const answer of [429, 503, "lost"]) {
    const ids = [];
    const ledger = memoryLedger();
    await ledger.write((memory) => (memory.reports = Array.from({ length: 60 }, (_, place) => rowOf(`${place}`))));
    const transport = async (url) => {
      ids.push(url.split("/").at(-1));
      if (answer === "lost") throw new TypeError("reset");
      return new Response(null, { status: answer });
    };
    await (await device({ ledger, transport })).flush({ attempts: 5 });
    assert.deepEqual([ids.length, new Set(ids).size], [5, 5]);
  }
});

test("batched reports behind an overloaded server leave in another window", async () => {
  const batched = { channel: { batches: { hours: 1 } }, due: Date.now() - 1 };
  const ledger = memoryLedger();
  await ledger.write((memory) => (memory.reports = [..."1234"].map((id) => ({ ...rowOf(id), ...batched }))));
  const transport = async () => new Response(null, { status: 503 });
  await (await device({ ledger, transport })).flush({ attempts: 2 });
  const { reports } = await ledger.read((memory) => memory);
  assert.ok(reports.every(({ due }) => due > Date.now()));
});

test("deletions and reports leave in random order", async () => {
  const orders = new Set();
  for (let count = 0; count < 500; count++) {
    const order = [];
    const ledger = memoryLedger();
    await ledger.write((memory) => (memory.reports = [..."abcd"].map(rowOf)));
    const transport = async (url) => (order.push(url.at(-1)), new Response(null, { status: 404 }));
    await (await device({ ledger, transport })).flush({ attempts: 1 });
    orders.add(order.join(""));
  }
  assert.equal(orders.size, 24);
});

test("answers of proxies and captive portals drop no report", async () => {
  for (const status of [200, 204, 302, 401, 403, 404, 410, 422]) {
    const { collector, report, flush } = await agreed();
    collector.next = [status];
    const left = await flush();
    assert.deepEqual([left.state, left.body], ["queued", report.body], status);
    assert.equal((await flush()).state, "sent");
  }
});

test("only a refusal of the answered study is permanent", async () => {
  const { collector, report, flush } = await agreed();
  const stateAfter = async (name, digest) => {
    collector.next = [{ status: 409, name, digest }];
    return (await flush()).state;
  };
  const another = (await read(study(YES_NO, { title: "Another" }))).digest;
  assert.equal(await stateAfter("study-unknown", report.digest), "queued");
  assert.equal(await stateAfter("report-withdrawn", another), "queued");
  assert.equal(await stateAfter("study-closed", report.digest), "queued");
  assert.equal(await stateAfter("report-withdrawn", report.digest), "refused");
  await flush();
  assert.equal(collector.requests.length, 4);
  assert.deepEqual(collector.fetched, []);
});

test("what is withdrawn while it is sent is deleted", async () => {
  const { one, collector, flush } = await agreed();
  collector.next = [() => one.withdraw("survey")];
  assert.equal((await flush()).state, "withdrawn");
  assert.equal(await flush(), undefined);
  assert.deepEqual(collector.methods, ["PUT", "DELETE"]);
});

test("media types may be spelt in any way", async () => {
  const { exchange } = await import("../../js/upload.js");
  const result = async (type) => {
    const headers = { "Content-Type": type };
    const transport = async () => new Response(JSON.stringify({ id: "aa", result: "stored" }), { headers });
    return (await exchange(transport, COLLECTOR, {}, { id: "aa" })).result || "none";
  };
  const type = "application/json";
  const spelt = [type, type.toUpperCase(), `${type}; charset=utf-8`, `${type} ;a=b`];
  assert.deepEqual(await Promise.all(spelt.map(result)), Array(4).fill("stored"));
  assert.deepEqual(await Promise.all([`${type}x`, `text/${type}`, ""].map(result)), Array(3).fill("none"));
});

test("requests tell nothing that links them", async () => {
  const { collector, one, flush } = await agreed();
  const seen = [];
  const spied = { ...one, transport: async (url, options) => (seen.push(options), collector.transport(url, options)) };
  await fetchStudy(spied, "survey");
  assert.deepEqual(seen.map(({ credentials, redirect, referrerPolicy, cache }) => [credentials, redirect, referrerPolicy, cache]), [
    ["omit", "error", "no-referrer", "no-store"],
  ]);
  // React Native's requests know no `cache`, and would put the device's clock into the address.
  const { Request, TextDecoder } = globalThis;
  globalThis.Request = class {};
  delete globalThis.TextDecoder;
  collector.fetched = [];
  for (let count = 0; count < 2; count++) await fetchStudy(one, "survey");
  const { state } = await flush();
  Object.assign(globalThis, { Request, TextDecoder });
  const stamps = collector.fetched.map((url) => Number(/_=(\d+)$/.exec(url)?.[1]));
  assert.deepEqual([state, new Set(stamps).size, stamps.length], ["sent", 2, 2]);
  assert.ok(stamps.every((stamp) => stamp < 2 ** 32 && Math.abs(stamp - Date.now()) > 1e6));
});

test("a fetched study is open and the one that was asked for", async () => {
  const headers = (more) => ({ headers: { "Content-Type": "application/json", ...more } });
  const fetched = (...answer) => outcome(fetchStudy({ collector: COLLECTOR, transport: async () => new Response(...answer) }, "survey"), true);
  assert.equal(await fetched(ASKED.canonical, headers()), "done");
  assert.equal(await fetched(OTHER.canonical, headers()), "input study");
  assert.equal(await fetched("", { status: 404 }), "input study");
  assert.equal(await fetched(ASKED.canonical, headers({ "LDPKit-Study": "closed" })), "closed ");
  assert.equal(await fetched("", { status: 410 }), "closed ");
});

test("canonical JSON is that of RFC 8785 and bytes are read from where they stand", () => {
  const written = String.raw`{"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[true,false]}`;
  assert.equal(canonicalJson(parseJson(written)), String.raw`{"literals":[true,false],"string":"€$\u000f\nA'B\"\\\\\"/"}`);
  // A view of the whole buffer would draw noise from other bytes.
  assert.equal(viewOf(Uint8Array.of(9, 9, 1, 2, 3, 4).subarray(2)).getUint32(0), 0x01020304);
});
