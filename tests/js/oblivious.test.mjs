/** Oblivious HTTP (RFC 9458): a relay sees sizes alone, and what it says itself settles nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fetchStudy } from "../../js/index.js";
import { binary, encapsulate, oblivious, plain } from "../../js/oblivious.js";
import { COLLECTOR, YES_NO, device, golden, memoryLedger, outcome, read, study } from "./support.mjs";

const RELAY = "https://relay.example";
const vector = golden("rfc/rfc9458_appendix_a");
const bytes = (name) => new Uint8Array(Buffer.from(vector[name], "hex"));
const base64 = (digits) => Buffer.from(digits, "hex").toString("base64");
const POINT = "11".repeat(32);
const GOOD = base64(`010020${POINT}000400010001`);
const control = ["GET", "https", "example.com", "/"];
const padded = (size) => binary(control, {}, "x".repeat(size));

test("messages are those of the RFC and damaged ones are refused", async () => {
  const url = (name) => Buffer.from(vector[name], "hex").toString("base64url");
  const imported = (more, uses) =>
    crypto.subtle.importKey("jwk", { kty: "OKP", crv: "X25519", x: url("ephemeral_public_key"), ...more }, { name: "X25519" }, true, uses);
  const ephemeral = { publicKey: await imported({}, []), privateKey: await imported({ d: url("ephemeral_secret_key") }, ["deriveBits"]) };
  const { message, open } = await encapsulate(bytes("key_config"), bytes("request_bhttp"), ephemeral);
  const hex = (found) => Buffer.from(found).toString("hex");
  assert.equal(hex(message), vector.encapsulated_request);
  const answer = await open(bytes("encapsulated_response"));
  assert.equal(hex(answer), vector.response_bhttp);
  assert.equal(plain(Uint8Array.from([...answer, 0, 0])).status, 200);
  const changed = bytes("encapsulated_response");
  changed[20] ^= 1;
  await assert.rejects(open(changed));
  // Nor is the answer to another request opened.
  await assert.rejects((await encapsulate(bytes("key_config"), bytes("request_bhttp"))).open(bytes("encapsulated_response")));
  const read = plain(Uint8Array.from([1, 0x40, 200, 4, 1, 97, 1, 98, 2, 104, 105, 0, 0, 0]));
  assert.deepEqual([read.status, read.headers.get("a"), await read.text()], [200, "b", "hi"]);
  for (const none of [[], [0], [1, 0x40], [1, 0x40, 200, 5, 1, 97], [1, 0x40, 200, 0, 9]]) {
    assert.throws(() => plain(Uint8Array.from(none)));
  }
});

test("requests are padded to one of four sizes", () => {
  assert.deepEqual([0, 4000, 4096, 16000, 60000, 250000].map((size) => padded(size).length >> 10), [4, 4, 16, 16, 64, 256]);
  assert.throws(() => padded(256 << 10));
});

const OPTIONS = [
  [{ relay: `${RELAY}/x/`, keys: GOOD }, `${RELAY}/x`],
  [{ relay: "http://127.0.0.1:8080", keys: base64(`000020${POINT}00080001000300010001`) }, "http://127.0.0.1:8080"],
  ...["http://relay.example", `${RELAY}?a`, ""].map((relay) => [{ relay, keys: GOOD }, "input relay"]),
  ...[undefined, `${GOOD}\n`, `?${GOOD}`, base64(`010020${POINT}000400010002`), base64(`010020${POINT}0004000100`), base64(`010021${POINT}000400010001`)].map(
    (keys) => [{ relay: RELAY, keys }, "input keys"],
  ),
];

test("wrong relays and keys are rejected", async () => {
  const opened = (options) => oblivious(options).then(({ relay }) => relay, ({ code, field }) => `${code} ${field}`);
  for (const [options, expected] of OPTIONS) assert.equal(await opened(options), expected, JSON.stringify(options));
  const { generateKey } = crypto.subtle;
  crypto.subtle.generateKey = async () => {
    throw new DOMException("no", "NotSupportedError");
  };
  const pending = oblivious({ relay: RELAY, keys: GOOD });
  assert.equal(await device({ transport: pending }).catch(({ message }) => message), "input: needs X25519");
  crypto.subtle.generateKey = generateKey;
});

test("a request for another host is not relayed", async () => {
  // A token request carries a ticket, which the collector must not see.
  globalThis.fetch = () => assert.fail("relayed");
  const transport = await oblivious({ relay: RELAY, keys: GOOD });
  assert.equal(await outcome(transport("https://issuer.example/v1/tokens", {}), true), "input url");
});

test("only an answer of the right media type is opened", async () => {
  const transport = await oblivious({ relay: RELAY, keys: GOOD });
  const opens = (type) => {
    globalThis.fetch = async () => new Response(new Uint8Array(64), { headers: type && { "Content-Type": type } });
    // Nobody encapsulated it, so that opening fails.
    return transport(`${COLLECTOR}/v1/studies/s/reports/aa`, { method: "DELETE" }).then(() => false, () => true);
  };
  const type = "message/ohttp-res";
  for (const spelt of [type, type.toUpperCase(), `${type}; charset=utf-8`, `${type} ;a=b`]) assert.ok(await opens(spelt), spelt);
  for (const other of [`${type}x`, `text/${type}`, undefined]) assert.ok(!(await opens(other)), other);
});

test("a report too large for a relay is rejected before it is answered", async () => {
  const noise = { name: "oue", epsilon: "0.05" };
  const asked = Array.from({ length: 24 }, (_, place) => ({
    id: `q${place}`, ask: "choice", choices: { count: 65_536 }, mechanism: noise,
  }));
  const large = await read(study(asked));
  const answers = Object.fromEntries(asked.map(({ id }) => [id, 7]));
  const transport = Object.assign(async () => {}, { relay: RELAY });
  const [relayed, direct] = [await device({ transport }), await device()];
  assert.deepEqual([await outcome(relayed.answer(large, answers)), await relayed.epsilonLeft()], ["study", 4]);
  assert.equal(await outcome(direct.answer(large, answers)), "done");
});

test("a key that is gone is named and tried again at the next flush", async () => {
  // Only the relay says so: nothing is dropped.
  let requests = 0;
  globalThis.fetch = async () => {
    requests++;
    return new Response('{"type": "https://iana.org/assignments/http-problem-types#ohttp-key"}', { status: 400 });
  };
  const asked = await read(study(YES_NO));
  const ledger = memoryLedger();
  const one = await device({ ledger, transport: oblivious({ relay: RELAY, keys: GOOD }) });
  assert.equal(await outcome(fetchStudy(one, "survey")), "key");
  await one.answer(asked, { ever: "yes" });
  await one.consent(asked);
  const flushed = async () => {
    requests = 0;
    await one.flush({ attempts: 3 });
    const { state, reason } = (await one.status(asked)).report;
    return [state, reason, requests];
  };
  assert.deepEqual(await flushed(), ["queued", "key", 1]);
  await one.withdraw("survey");
  assert.deepEqual([await flushed(), await flushed()], Array(2).fill(["withdrawn", "key", 1]));
});
