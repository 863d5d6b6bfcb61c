/** Reports and deletions are sent, retried and settled. */
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { fetchStudy } from "../../js/index.js";
import { viewOf } from "../../js/randomness.js";
import { canonicalJson, parseJson } from "../../js/encoding.js";
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

test("withdrawal asks for deletion until it is acknowledged", async () => {
  const { one, collector, report, flush } = await agreed();
  collector.next = [502, { status: 409, name: "report-conflict", digest: report.digest }];
  // Its first upload arrived, and the answer was lost: a rejected report is deleted too.
  assert.equal((await flush(5)).state, "refused");
  assert.equal(await one.withdraw("survey"), 1);
  const others = [405, 503, 204, 404, 410, 200];
  for (const other of others) {
    collector.next = [other];
    const { state, reason, body } = await flush();
    assert.deepEqual([state, reason, body], ["withdrawn", `foreign ${other}`, ""]);
  }
  assert.equal(await flush(), undefined);
  const deletions = collector.requests.slice(2);
  assert.deepEqual(new Set(deletions.map(({ method, report: id }) => `${method} ${id}`)), new Set([`DELETE ${report.id}`]));
  assert.deepEqual(deletions.map(({ headers }) => headers["LDPKit-Withdrawal"]), Array(others.length + 1).fill(report.secret));
  assert.equal((await one.status(ASKED)).answered, true);
});

// attack 9: An app opens the device with another collector, which would get the report and its secret.
test("a report is sent only to its own collector whatever its spelling", async () => {
  const { one, ledger, collector, flush } = await agreed(ASKED, { collector: new Collector(ASKED) });
  const at = (base, ...formerly) => openDevice({ maxEpsilon: "4", collector: base, formerly, ledger, transport: collector.transport });
  await (await at("https://other.example")).flush({ attempts: 1 });
  assert.deepEqual([collector.requests, collector.fetched], [[], []]);
  // The path is that which it was made for.
  const second = await at(`${COLLECTOR.toUpperCase()}:443/second/`);
  assert.equal(await outcome(second.answer(ASKED, { ever: true })), "answered");
  await second.flush({ attempts: 1 });
  assert.match(collector.requests[0].url, /^https:\/\/collector\.example\/v1\/studies\/survey\/reports\//);
  await one.withdraw("survey");
  await (await at("https://other.example")).flush({ attempts: 1 });
  assert.deepEqual(collector.methods, ["PUT"]);
  // Where the collector moved its deletion goes too.
  await (await at("https://moved.example", COLLECTOR)).flush({ attempts: 1 });
  assert.equal(new URL(collector.requests[1].url).host, "moved.example");
  assert.equal(await flush(), undefined);
});

test("a closed study is given up a month after its last day by both clocks", async () => {
  const all = [[29, "", "queued"], [32, "never", "refused"], [32, 29, "queued"], [29, 32, "queued"], [32, 32, "refused"]];
  for (const [days, collectorsDays, state] of all) {
    mock.timers.enable({ apis: ["Date"], now: Date.UTC(2026, 5, 15, 12) });
    const asked = await read(study(YES_NO, { closes: "2026-06-15" }));
    const { collector, flush } = await agreed(asked, { collector: new Collector(asked) });
    mock.timers.tick(days * DAY_MS);
    const date = new Date(Date.UTC(2026, 5, 15, 12) + collectorsDays * DAY_MS);
    collector.date = +collectorsDays ? date.toUTCString() : collectorsDays;
    collector.next = [{ status: 410, name: "study-closed", digest: asked.digest }];
    assert.equal((await flush()).state, state);
    mock.timers.reset();
  }
});

test("a ticket is sent beside the report and forgotten", async () => {
  const { one, collector, report, flush } = await agreed(ASKED, { ticket: "first" });
  assert.ok(!report.body.includes("first"));
  collector.next = [{ status: 401, name: "ticket-needed", digest: "" }];
  assert.equal((await flush(5)).state, "ticketless");
  assert.equal(collector.requests.length, 1);
  await one.giveTicket("survey", "second");
  const { state, ticket, body } = await flush();
  assert.deepEqual([state, ticket, body], ["sent", "", report.body]);
  const sent = collector.requests.map(({ headers }) => headers["LDPKit-Ticket"]);
  assert.deepEqual(sent, ["first", "second"]);
  // Also of a report that is refused; one that waits still needs it.
  const refused = await agreed(ASKED, { ticket: "third" });
  refused.collector.next = [503, { status: 422, name: "report-invalid", digest: ASKED.digest }];
  const found = [await refused.flush(), await refused.flush()];
  assert.deepEqual(found.map((its) => [its.state, its.ticket]), [["queued", "third"], ["refused", ""]]);
  const plain = await agreed();
  await plain.flush();
  assert.ok(!("LDPKit-Ticket" in plain.collector.requests[0].headers));
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
