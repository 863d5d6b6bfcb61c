/** Reports of a study with a channel: a blind token in one window, the report in a later one, and withdrawal at each stage. */
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { choose, drawDue } from "../../js/sending.js";
import { blind, bytesOf, challengeOf, encode, finalise, integer, inverse, requestOf, spread } from "../../js/tickets.js";
import {
  COLLECTOR, Collector, DAY_MS, ISSUER, Issuer, YES_NO, channelOf, device, golden, isToken, keys, memoryLedger, outcome, read,
  study,
} from "./support.mjs";

Math.random = () => 0;
const CODE = "CODE";
const REGION = { id: "region", choices: ["north", "south"], source: "ticket" };
const STRATA = [{ region: "north" }, { region: "south" }];
const window = (moment) => Math.floor(moment / DAY_MS);
let now;
Date.now = () => now;
beforeEach(() => (now = Date.UTC(2026, 5, 15, 12)));

/** A device that agreed to a report of a study with tokens; each call opens the ledger again, as a new process does. */
async function person({ channel = channelOf(), ticket = CODE, isHeld = false, ...more } = {}) {
  const asked = await read(study(YES_NO, { channel, ...more }));
  const collector = new Collector(asked);
  const issuer = (collector.issuer = new Issuer());
  const ledger = memoryLedger();
  const opened = () => device({ ledger, transport: collector.transport });
  await (await opened()).answer(asked, { ever: "yes" }, ticket);
  if (!isHeld) await (await opened()).consent(asked);
  const report = async () => (await (await opened()).status(asked)).report;
  return {
    asked, collector, issuer, report,
    flush: async (options) => {
      await (await opened()).flush({ attempts: 1, ...options });
      return (await report())?.state ?? "gone";
    },
    invite: async (code) => (await opened()).giveTicket("survey", code),
    withdraw: async () => (await opened()).withdraw("survey"),
    due: async (beside = 0) => (now = (await report()).due + beside),
  };
}

test("a token is asked for in one window and the report sent in the next", async () => {
  const { asked, collector, issuer, report, flush, invite, due } = await person();
  assert.equal(await flush({ attempts: 5 }), "queued");
  const waits = await report();
  assert.equal(window(waits.due), window(now) + 1);
  assert.deepEqual([waits.ticket, waits.reason, waits.asked], ["", "", { place: 0 }]);
  // Another ticket comes too late, and is not sent with the token. The collector hears nothing before the moment.
  await invite("LATE");
  await due(-1);
  assert.deepEqual([await flush({ attempts: 5 }), collector.requests, collector.fetched], ["queued", [], []]);
  await due();
  assert.equal(await flush(), "sent");
  assert.deepEqual([issuer.asked.length, issuer.asked[0][0]], [1, CODE]);
  const [{ body, headers }] = collector.requests;
  assert.equal(body, waits.body);
  assert.ok(!("LDPKit-Ticket" in headers) && isToken(headers.Authorization, asked));
  // What the issuer saw has nothing of the token.
  const token = Buffer.from(headers.Authorization.slice(20, -1), "base64url").toString("hex");
  for (let at = 4; at < 680; at += 16) assert.ok(!issuer.asked[0][1].includes(token.slice(at, at + 16)));
  assert.equal((await report()).token, "");
});

test("moments are drawn evenly in the window", () => {
  const at = (...bytes) => Object.assign(() => Uint8Array.of(...bytes), { forTests: true });
  const width = 6 * 36e5;
  const from = (moment) => [at(0, 0, 0, 0), at(128, 0, 0, 0), at(255, 255, 255, 255)].map((random) => drawDue({ batches: { hours: 6 } }, moment, random));
  const expected = [width, width * 1.5, 2 * width - 1];
  assert.deepEqual([from(0), from(width - 1), from(width)], [expected, expected, expected.map((moment) => moment + width)]);
});

test("a lost answer of the issuer is requested again unchanged", async () => {
  const { collector, issuer, report, flush, due } = await person();
  issuer.told = ["lost", [503, "busy"]];
  const found = [];
  for (let count = 0; count < 2; count++) found.push([await flush(), (await report()).reason, (await report()).asked]);
  assert.deepEqual(found.map(([state, reason]) => [state, reason]), [["queued", "issuer unreachable"], ["queued", "issuer problem 503 busy"]]);
  assert.deepEqual(found[0][2], found[1][2]);
  await flush();
  await due();
  assert.equal(await flush(), "sent");
  assert.equal(new Set(issuer.asked.map(String)).size, 1);
  assert.equal(collector.requests.length, 1);
});

const other = keys[1].shortId;
const TOLD = [
  [[401, "ticket-needed"], "ticketless", "issuer problem 401 ticket-needed"],
  [[409, "ticket-spent"], "ticketless", "issuer problem 409 ticket-spent"],
  [[422, "token-key-unknown"], "queued", "issuer problem 422 token-key-unknown"],
  // Of no stratum that the study has.
  [[409, "token-key-other", { key_id: other }], "queued", "issuer problem 409 token-key-other"],
  [[409, "token-key-other", { key_id: "length" }], "queued", "issuer problem 409 token-key-other"],
  ["forged", "queued", "issuer foreign 200"],
];

test("a device recovers from every answer of the issuer", async () => {
  for (const [told, state, reason] of TOLD) {
    const { asked, collector, issuer, report, flush, invite, due } = await person();
    issuer.told = [told];
    assert.deepEqual([await flush(), (await report()).reason], [state, reason]);
    await invite(CODE);
    await flush();
    await due();
    assert.equal(await flush(), "sent");
    assert.ok(isToken(collector.requests[0].headers.Authorization, asked));
  }
});

test("a report without a ticket asks for no token", async () => {
  const { issuer, flush } = await person({ ticket: "" });
  assert.deepEqual([await flush(), issuer.asked], ["ticketless", []]);
});

test("the issuer names the stratums key once", async () => {
  // Its choice of keys could single out people.
  const { asked, collector, issuer, report, flush, due } = await person({ channel: channelOf(...STRATA), public: [REGION] });
  issuer.strata.CODE = 1;
  await flush();
  assert.deepEqual((await report()).asked, { place: 1 });
  await due();
  await flush();
  const ids = ({ asked: requests }) => requests.map(([, body]) => parseInt(body.slice(4, 6), 16));
  assert.deepEqual(ids(issuer), keys.map(({ shortId }) => shortId));
  assert.notEqual(issuer.asked[0][1].slice(6), issuer.asked[1][1].slice(6));
  const [{ body, headers }] = collector.requests;
  assert.ok(isToken(headers.Authorization, asked, keys[1]) && !body.includes("region"));
  const misled = await person({ channel: channelOf(...STRATA), public: [REGION] });
  misled.issuer.told = [1, 0, 0].map((place) => [409, "token-key-other", { key: 2, key_id: keys[place].shortId }]);
  assert.deepEqual([await misled.flush(), await misled.flush()], ["queued", "queued"]);
  assert.deepEqual(ids(misled.issuer), [0, 1, 1].map((place) => keys[place].shortId));
  assert.deepEqual(misled.issuer.asked[1], misled.issuer.asked[2]);
});

test("an issuer of this machine serves no study of a remote collector", async () => {
  const { batches, tickets } = channelOf();
  const asked = await read(study(YES_NO, { channel: { batches, tickets: { ...tickets, issuer: "http://localhost:8100" } } }));
  const at = async (collector) => outcome((await device({ collector })).answer(asked, { ever: true }), true);
  assert.deepEqual([await at(COLLECTOR), await at("http://127.0.0.1:8000")], ["study channel", "done"]);
  // Nor does a transport with a relay reach an issuer.
  const relayed = Object.assign(async () => {}, { relay: "https://relay.example" });
  const own = await read(study(YES_NO, { channel: channelOf() }));
  const one = await device({ transport: relayed });
  assert.equal(await outcome(one.answer(own, { ever: true }), true), "study channel.tickets");
  assert.equal(await one.epsilonLeft(), 4);
  // Nor is the issuer at the collector's origin.
  const both = { batches, tickets: { ...tickets, issuer: `${COLLECTOR}:443/tickets` } };
  const joined = await read(study(YES_NO, { channel: both }));
  const refusing = await device({ collector: COLLECTOR });
  assert.equal(await outcome(refusing.answer(joined, { ever: true }), true), "study channel.tickets.issuer");
});

test("a rejected report is sent in the next window with its token", async () => {
  for (const [status, name] of [[401, "ticket-invalid"], [409, "ticket-spent"], [503, "busy"], [502]]) {
    const { collector, report, flush, due } = await person();
    await flush();
    const first = await due();
    const tries = status > 500 ? 2 : 1;
    collector.next = Array(tries).fill(name ? { status, name } : status);
    assert.equal(await flush({ attempts: 2 }), "queued");
    const waits = await report();
    assert.deepEqual([waits.reason, window(waits.due)], [name ? `problem ${status} ${name}` : `foreign ${status}`, window(first) + 1]);
    assert.equal(await flush({ attempts: 2 }), "queued");
    await due();
    assert.equal(await flush(), "sent");
    const sent = collector.requests.map(({ body, headers }) => headers.Authorization + body);
    assert.deepEqual([sent.length, new Set(sent).size], [tries + 1, 1]);
  }
});

test("a clock that was moved far back draws a new moment", async () => {
  const { collector, report, flush } = await person();
  await flush();
  now = DAY_MS * 1000;
  assert.deepEqual([await flush(), collector.requests, window((await report()).due)], ["queued", [], 1001]);
});

const STAGES = {
  held: [{ isHeld: true }, async () => {}, 0],
  "not asked for a token": [{}, async () => {}, 0],
  "without a token yet": [{}, async ({ issuer, flush }) => (issuer.told.push("lost"), flush()), 0],
  "with its token": [{}, async ({ flush }) => flush(), 0],
  sent: [{}, async ({ flush, due }) => [await flush(), await due(), await flush()], 1],
  "on its way": [{}, async ({ collector, withdraw, flush, due }) => {
    await flush();
    await due();
    collector.next = [withdraw];
    await flush();
  }, 1],
};

test("a report can be withdrawn at each stage", async () => {
  // An unsent one is wiped; one that may have left is deleted; neither is sent again.
  for (const [stage, [options, until, deletions]] of Object.entries(STAGES)) {
    const one = await person(options);
    await until(one);
    await one.withdraw();
    assert.equal(await one.flush({ now: true }), "gone", stage);
    now = 2e12;
    await one.flush();
    assert.deepEqual(one.collector.methods, ["PUT", "DELETE"].slice(0, 2 * deletions), stage);
  }
});

test("a deletion is sent in the next window and retried in the one after", async () => {
  const { collector, report, flush, withdraw, due } = await person();
  await flush();
  const sent = await due();
  await flush();
  await withdraw();
  assert.equal(await flush(), "withdrawn");
  const { due: moment } = await report();
  assert.equal(window(moment), window(sent) + 1);
  // Withdrawn again it is put off no more.
  await withdraw();
  await due(-1);
  assert.deepEqual([await flush(), (await report()).due, collector.methods], ["withdrawn", moment, ["PUT"]]);
  await due();
  collector.next = [503];
  assert.deepEqual([await flush(), window((await report()).due)], ["withdrawn", window(moment) + 1]);
  await due();
  assert.deepEqual([await flush(), collector.methods], ["gone", ["PUT", "DELETE", "DELETE"]]);
});

const body = "{}";
const channel = { batches: { hours: 1 }, tickets: {} };
const ROWS = {
  first: { body, state: "queued", channel, ticket: CODE },
  retried: { body, state: "queued", channel, ticket: CODE, asked: { place: 0 }, due: 1 },
  ticketless: { body, state: "ticketless", channel, ticket: "" },
  batched: { body, state: "queued", channel, ticket: "", token: "T", due: 1 },
  deletion: { body: "", state: "withdrawn", channel, ticket: "", due: 1 },
  alone: { body, state: "queued", ticket: "" },
};
const chosen = (ids, isNow, relay) => {
  const memory = { reports: ids.map((id) => structuredClone({ id, ...ROWS[id] })) };
  const leaves = choose(undefined, isNow, relay)(memory);
  assert.ok(memory.reports.every(({ id, due }) => leaves.includes(id) || due > now), "lost");
  return leaves.join();
};
const everyChoice = (...given) => [...new Set(Array.from({ length: 64 }, () => chosen(...given)))].sort();

// attack 12: Issuer and collector compare moments, to join a ticket with a report.
test("a batched report never leaves next to a token request", () => {
  // A token request carries the ticket. A first one goes first; among retries chance decides.
  assert.deepEqual(everyChoice(["first", "batched", "deletion", "alone"]), ["first,alone"]);
  assert.deepEqual(everyChoice(["first", "retried", "batched"]), ["first,retried"]);
  assert.deepEqual(everyChoice(["retried", "batched", "deletion", "alone"]), ["batched,deletion,alone", "retried,alone"]);
  assert.deepEqual(everyChoice(["first", "batched", "deletion"], true), ["first,deletion"]);
  assert.deepEqual(everyChoice(["ticketless", "batched"]), ["ticketless,batched"]);
  assert.deepEqual(everyChoice(["batched", "deletion"]), ["batched,deletion"]);
});

test("batched requests leave one at a time through a relay", () => {
  // Two at once would belong to one person. A deletion that is hurried on purpose is not held back.
  assert.deepEqual(everyChoice(["batched", "deletion"], false, "relay"), ["batched", "deletion"]);
  assert.deepEqual(everyChoice(["batched", "deletion", "alone"], true, "relay"), ["batched,deletion,alone"]);
});

const hex = (bytes) => Buffer.from(bytes).toString("hex");
const bytes = (text = "") => bytesOf(text.replace("0x", ""));

test("blind signatures are those of RFC 9474", async () => {
  for (const { n, input_msg, salt, encoded_msg, inv, blinded_msg, blind_sig, sig } of golden("rfc/rfc9474")) {
    const [modulus, size] = [BigInt(n), blinded_msg.length / 2];
    const secret = inverse(BigInt(inv), modulus);
    const encoded = await encode(bytes(input_msg), salt ? bytes(salt) : new Uint8Array(), size);
    assert.equal(encoded_msg ? hex(spread(encoded, size)) : undefined, encoded_msg || undefined);
    assert.equal(hex(spread(blind(encoded, secret, modulus), size)), blinded_msg);
    const signed = (change) => finalise(encoded, secret, modulus, change(integer(bytes(blind_sig))));
    assert.equal(hex(spread(signed((one) => one), size)), sig);
    assert.deepEqual([signed((one) => one ^ 1n), signed((one) => one + modulus)], [false, false]);
  }
});

test("tokens and challenges are those of RFC 9578 and RFC 9577", async () => {
  for (const vector of golden("rfc/rfc9578_public")) {
    const drawn = { secret: integer(bytes(vector.blind)), nonce: bytes(vector.nonce), salt: bytes(vector.salt) };
    const { body: made, finish } = await requestOf(bytes(vector.pkS), bytes(vector.token_challenge), drawn);
    assert.equal(hex(made), vector.token_request);
    assert.equal(Buffer.from(finish(bytes(vector.token_response)), "base64url").toString("hex"), vector.token);
    const forged = bytes(vector.token_response).map((byte, index) => byte ^ (index === 255));
    assert.deepEqual([finish(forged), finish(forged.subarray(1))], ["", ""]);
  }
  for (const vector of golden("rfc/rfc9577_header")) {
    // The device's challenges name no origin.
    const challenge = vector["token-challenge-0"];
    const [context] = /[0-9a-f]{64}(?=000e)/.exec(challenge.slice(2 * 18)) ?? [];
    const origin = Buffer.from("origin.example").toString("hex");
    assert.equal(hex(challengeOf(`${ISSUER}/a`, context)), challenge.replace(`000e${origin}`, "0000"));
  }
});
