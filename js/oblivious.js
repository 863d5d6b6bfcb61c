/**
 * Oblivious HTTP (RFC 9458): a relay hides the device's address from the gateway.
 *
 * HPKE (RFC 9180) with X25519, HKDF-SHA256 and AES-128-GCM, by WebCrypto.
 */

import { safeBaseOf } from "./address.js";
import { join, utf8 } from "./encoding.js";
import { fail, orElse } from "./errors.js";
import { packBelow } from "./integers.js";
import { ask } from "./upload.js";

const X25519 = { name: "X25519" };
const REQUEST_TYPE = "message/ohttp-req";
const ANSWER_TYPE = /^message\/ohttp-res\s*(;|$)/i;
const KEY_PROBLEM = "http-problem-types#ohttp-key";
// A key configuration: X25519, and among its suites HKDF-SHA256 with AES-128-GCM.
const CONFIGURATION = /^.\0 .{34}(.{4})*?\0\x01\0\x01(.{4})*$/s;
const POINT_AT = 3;
const POINT_END = 35;
const SUITES_AT = 37;
const SECRET_BYTES = 16;
const NONCE_BYTES = 12;
const HASH_BYTES = 32;
// HMAC's key of no bytes, which browsers do not take as that.
const NO_SALT = new Uint8Array(HASH_BYTES);
// Of requests: a relay sees sizes. ldp_client/oblivious/binary_http.py has the same.
const SIZES = [4 << 10, 16 << 10, 64 << 10, 256 << 10];
// What a gateway answers, of a URL of its collector; that one's own address may be known to this person alone.
const PATH = /.*(\/v1\/studies\/[^?]+(\?version=\d+)?)/;

const drawPair = async () => crypto.subtle.generateKey(X25519, false, ["deriveBits"]);

/** As index.d.ts says. */
export async function oblivious({ relay: given, keys }) {
  const relay = safeBaseOf(given, "relay");
  const configuration = configurationOf(keys);
  await drawPair().catch(orElse("input", "needs X25519"));

  async function transport(url, { method = "GET", headers = {}, body = "" } = {}) {
    const [, path] = PATH.exec(url) ?? fail("input", "is beyond the relay", "url");
    const request = binary([method, "https", "collector", path], headers, body);
    const { message, open } = await encapsulate(configuration, request);
    const options = { method: "POST", headers: { "Content-Type": REQUEST_TYPE }, body: message };
    const outer = await ask(fetch, relay, options);
    const { status } = outer;
    const isAnswer = status === 200 && ANSWER_TYPE.test(outer.headers.get("Content-Type"));
    if (isAnswer) return plain(await open(new Uint8Array(await outer.arrayBuffer())));
    // What a relay says itself is about no report.
    const isKeyGone = status === 400 && (await outer.text()).includes(KEY_PROBLEM);
    if (isKeyGone) fail("key", "the relay says that the collector no longer has this app's key");
    return new Response(null, { status });
  }
  return Object.assign(transport, { relay });
}

/** The bytes of a key configuration (RFC 9458, section 3.1) in base64. Throws LdpkitError "input". */
function configurationOf(text) {
  try {
    const read = atob(text);
    const length = read.charCodeAt(POINT_END) * 256 + read.charCodeAt(POINT_END + 1);
    const isWhole = CONFIGURATION.test(read) && read.length === SUITES_AT + length;
    if (btoa(read) === text && isWhole) return Uint8Array.from(read, (letter) => letter.charCodeAt());
  } catch {
    // Not base64.
  }
  return fail("input", "must be what `ldpkit ohttp` prints", "keys");
}

/** Return a request of known length (RFC 9292), padded to one of SIZES. Throws if it is longer. */
export function binary(control, headers, content) {
  const fields = Object.entries(headers).flatMap(([name, value]) => [name.toLowerCase(), value]);
  const texts = (list) => join(...list.map((text) => sized(utf8(text))));
  const message = join([0], texts(control), sized(texts(fields)), sized(utf8(content)), [0]);
  const padded = new Uint8Array(SIZES.find((size) => message.length <= size));
  padded.set(message);
  return padded;
}

/** The answer that a binary one is. Throws for what is none. */
export function plain(message) {
  let at = 0;
  const take = (count) => {
    if (at + count > message.length) throw new RangeError();
    return message.subarray(at, (at += count));
  };
  const number = () => {
    const [first] = take(1);
    return take((1 << (first >> 6)) - 1).reduce((high, low) => high * 256 + low, first & 63);
  };
  const part = () => take(number());
  const text = () => new TextDecoder("utf8", { fatal: true }).decode(part());
  if (number() !== 1) throw new RangeError();
  const status = number();
  const end = number() + at;
  const headers = new Headers();
  while (at < end) headers.append(text(), text());
  const content = part();
  return new Response(status === 204 || status === 304 ? null : content, { status, headers });
}

/** Return {message, open}: an encapsulated request, and what opens the answer to it. */
export async function encapsulate(configuration, request, ephemeral) {
  const { subtle } = crypto;
  const point = configuration.slice(POINT_AT, POINT_END);
  const head = join(configuration.slice(0, POINT_AT), [0, 1, 0, 1]);
  const { privateKey, publicKey } = ephemeral ?? (await drawPair());
  const enc = new Uint8Array(await subtle.exportKey("raw", publicKey));
  const receiver = await subtle.importKey("raw", point, X25519, false, []);
  const bits = await subtle.deriveBits({ ...X25519, public: receiver }, privateKey, 8 * HASH_BYTES);

  const kem = labelled(join(utf8("KEM"), [0, 0x20]));
  const shared = await kem.extract(NO_SALT, "eae_prk", new Uint8Array(bits));
  const secret = await kem.expand(shared, "shared_secret", join(enc, point), HASH_BYTES);
  const hpke = labelled(join(utf8("HPKE"), [0, 0x20, 0, 1, 0, 1]));
  const info = await hpke.extract(NO_SALT, "info_hash", join(utf8("message/bhttp request"), [0], head));
  const schedule = join([0], await hpke.extract(NO_SALT, "psk_id_hash", []), info);
  const prk = await hpke.extract(secret, "secret", []);
  const key = await hpke.expand(prk, "key", schedule, SECRET_BYTES);
  const nonce = await hpke.expand(prk, "base_nonce", schedule, NONCE_BYTES);
  const exporter = await hpke.expand(prk, "exp", schedule, HASH_BYTES);
  const open = async (answer) => {
    const exported = await hpke.expand(exporter, "sec", utf8("message/bhttp response"), SECRET_BYTES);
    const salted = await hmac(join(enc, answer.slice(0, SECRET_BYTES)), exported);
    const derived = async (label, size) => (await hmac(salted, utf8(label), [1])).slice(0, size);
    const iv = await derived("nonce", NONCE_BYTES);
    return cipher("decrypt", await derived("key", SECRET_BYTES), iv, answer.slice(SECRET_BYTES));
  };
  return { message: join(head, enc, await cipher("encrypt", key, nonce, request)), open };
}

/** LabeledExtract and LabeledExpand of RFC 9180, the latter for 32 bytes at most. */
const labelled = (suite) => ({
  extract: (salt, label, input) => hmac(salt, utf8("HPKE-v1"), suite, utf8(label), input),
  expand: async (prk, label, info, length) =>
    (await hmac(prk, [0, length], utf8("HPKE-v1"), suite, utf8(label), info, [1])).slice(0, length),
});

async function hmac(secret, ...parts) {
  const { subtle } = crypto;
  const key = await subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await subtle.sign("HMAC", key, join(...parts)));
}

async function cipher(what, secret, iv, content) {
  const name = "AES-GCM";
  const key = await crypto.subtle.importKey("raw", secret, name, false, [what]);
  return new Uint8Array(await crypto.subtle[what]({ name, iv }, key, content));
}

/** A part behind its length, as a variable-length integer (RFC 9000, section 16) below 2**30. */
function sized(part) {
  const { length } = part;
  const bytes = packBelow(length, length < 64 ? 1 : length < 1 << 14 ? 2 : 4);
  bytes[0] |= (bytes.length >> 1) << 6;
  return join(bytes, part);
}
