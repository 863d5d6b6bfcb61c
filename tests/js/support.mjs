/** What the tests of js/ share: studies, devices on ledgers in memory, a collector and an issuer without a network. */
import { constants, createHash, createPrivateKey, createPublicKey, generateKeyPairSync, privateDecrypt, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { openDevice, parseStudy } from "../../js/index.js";
import { memoryLedger } from "../../js/ledgers/memory.js";

export { openDevice, parseStudy, memoryLedger };
export const COLLECTOR = "https://collector.example";
export const ISSUER = "https://issuer.example";
export const DAY_MS = 864e5;

/** A file of tests/golden, read as JSON. */
export const golden = (name) => JSON.parse(readFileSync(new URL(`../golden/${name}.json`, import.meta.url), "utf8"));

const once = { name: "randomized_response", epsilon: "1" };
export const YES_NO = { id: "ever", ask: "yes_no", mechanism: once };
export const NUMBER = { id: "hours", ask: "number", bounds: ["0", "12"], mechanism: { name: "laplace", epsilon: "1" } };
export const CHOICE = {
  id: "occupation", ask: "choice", choices: ["student", "worker", "teacher"], mechanism: { name: "oue", epsilon: "1" },
};
export const RECORD = {
  id: "rating", ask: "record", features: [{ id: "age", bounds: ["17.5", "42"] }], norm: "1",
  response: { id: "rate", bounds: ["1", "5"] },
  mechanism: { name: "gaussian_statistics", epsilon: "1", delta: "1e-6" },
};
const kept = { name: "memoized", of: "sue", epsilon: "2", instantaneous_epsilon: "1" };
export const MEMOIZED = { ...CHOICE, id: "brand", mechanism: kept };
export const REGION = { id: "region", choices: ["north", "south"] };

export const study = (questions, more) => ({
  format: "ldpkit.study/1", id: "survey", version: 1, title: "A survey", questions: [questions].flat(), ...more,
});
export const withEpsilon = (question, epsilon) => ({ ...question, mechanism: { ...question.mechanism, epsilon } });
export const read = (document) => parseStudy(JSON.stringify(document));

/** A code, perhaps with the field; "done" where nothing is refused. */
export const outcome = (work, isFielded) =>
  work.then(() => "done", (error) => (isFielded ? `${error.code} ${error.field}` : (error.code ?? String(error))));

/** A device that reaches nobody, on a ledger of its own unless another is given. */
export const device = (more) =>
  openDevice({ maxEpsilon: "4", collector: COLLECTOR, ledger: memoryLedger(), transport: nowhere, ...more });
const nowhere = async () => {
  throw new TypeError("nobody there");
};

/** Bytes that follow from a number, by the generator mulberry32. */
export function seeded(seed) {
  const next = () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 24;
  };
  return Object.assign((size) => Uint8Array.from({ length: size }, next), { forTests: true });
}

/** Whether a share of many trials is that of a law, but for six standard deviations. */
export const isShare = (count, trials, share) =>
  Math.abs(count - trials * share) < 6 * Math.sqrt(trials * share * (1 - share));

const JSON_TYPE = "Application/JSON; charset=utf-8";
const PROBLEM_TYPE = "application/problem+json";
const problem = (name, more) => JSON.stringify({ type: `urn:ldpkit:problem:${name}`, ...more });

/**
 * A collector, in the place of the network. served: by id the study's text. requests: what changes reports, in order;
 * fetched: paths of studies. next: what the next requests are told in place of a receipt: a status of a proxy,
 * {status, name, digest}, "lost" (taken, but no answer comes), or a function that is called while it is on its way.
 */
export class Collector {
  requests = [];
  fetched = [];
  next = [];
  served = new Map();
  date = "";
  issuer = undefined;

  constructor(...studies) {
    for (const { id, canonical } of studies) this.served.set(id, canonical);
  }

  get methods() {
    return this.requests.map(({ method }) => method);
  }

  transport = async (url, { method = "GET", headers = {}, body } = {}) => {
    if (new URL(url).origin === ISSUER) return this.issuer.answer(headers["LDPKit-Ticket"], body);
    const [, id, report] = /^\/v1\/studies\/([^/?]+)(?:\/reports\/(\w+))?/.exec(new URL(url).pathname);
    if (method === "GET") {
      this.fetched.push(url);
      return this.#answer(200, JSON_TYPE, this.served.get(id) ?? "");
    }
    this.requests.push({ method, url, report, body, headers });
    let told = this.next.shift();
    if (typeof told === "function") told = await told();
    if (told === "lost") throw new TypeError("reset");
    if (typeof told === "number") return this.#answer(told, "text/html", told === 204 ? null : "<html>");
    if (told?.name) return this.#answer(told.status, PROBLEM_TYPE, problem(told.name, { digest: told.digest }));
    const receipt = { id: report, result: method === "PUT" ? "stored" : "withdrawn" };
    return this.#answer(201, JSON_TYPE, JSON.stringify(receipt));
  };

  #answer(status, type, body) {
    const headers = { "Content-Type": type, Date: this.date };
    return new Response(body, { status, headers });
  }
}

/** A key of an issuer, as a study states it (RFC 9578), with what signs blinded messages. */
class Key {
  constructor(privateKey) {
    this.privateKey = privateKey;
    this.publicKey = createPublicKey(privateKey);
    const modulus = Buffer.from(privateKey.export({ format: "jwk" }).n, "base64url");
    const spki = Buffer.concat([HEAD, modulus, Buffer.from("0203010001", "hex")]);
    this.stated = spki.toString("base64");
    this.id = createHash("sha256").update(spki).digest();
    this.shortId = this.id.at(-1);
  }

  sign(blinded) {
    return privateDecrypt({ key: this.privateKey, padding: constants.RSA_NO_PADDING }, blinded);
  }
}

const [{ pkS, skS }] = golden("rfc/rfc9578_public");
const HEAD = Buffer.from(pkS.slice(0, -2 * 261), "hex");
/** The key of RFC 9578, and another one of another short id. */
export const keys = [new Key(createPrivateKey(Buffer.from(skS, "hex")))];
do keys[1] = new Key(generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey);
while (keys[1].shortId === keys[0].shortId);

/** strata: {ticket: the place of its key}. told: what the next requests are answered in place of a token. */
export class Issuer {
  strata = { CODE: 0 };
  asked = [];
  told = [];
  given = new Map();

  answer(code, body) {
    this.asked.push([code, Buffer.from(body).toString("hex")]);
    const told = this.told.shift();
    if (Array.isArray(told)) return this.#problem(...told);
    if (told === "forged") return this.#token(body.slice(3));
    const judged = this.#judged(code, body);
    if (told === "lost") throw new TypeError("reset");
    return judged;
  }

  #judged(code, body) {
    const place = keys.findIndex(({ shortId }) => shortId === body[2]);
    const own = this.strata[code];
    if (place < 0) return this.#problem(422, "token-key-unknown");
    if (own === undefined) return this.#problem(401, "ticket-needed");
    if (own !== place) return this.#problem(409, "token-key-other", { key: own, key_id: keys[own].shortId });
    const asked = Buffer.from(body).toString("hex");
    if ((this.given.get(code) ?? asked) !== asked) return this.#problem(409, "ticket-spent");
    this.given.set(code, asked);
    return this.#token(keys[place].sign(body.slice(3)));
  }

  #problem = (status, name, more) => new Response(problem(name, more), { status, headers: { "Content-Type": PROBLEM_TYPE } });
  #token = (bytes) => new Response(bytes, { headers: { "Content-Type": "application/private-token-response" } });
}

/** The channel of a study with one key, or with one for each stratum. */
export const channelOf = (...strata) => {
  const stated = strata.map((values, place) => ({ key: keys[place].stated, public: values }));
  return { batches: { hours: 24 }, tickets: { issuer: ISSUER, keys: stated.length ? stated : [{ key: keys[0].stated }] } };
};

/** Whether a header has a token of that key, for that issuer and this study alone. */
export function isToken(header, { digest }, key = keys[0]) {
  const token = Buffer.from(/^PrivateToken token="([\w-]{472})"$/.exec(header)[1], "base64url");
  const name = Buffer.from(new URL(ISSUER).host);
  const challenge = Buffer.concat([Buffer.from([0, 2, 0, name.length]), name, Buffer.from(`20${digest}0000`, "hex")]);
  const digests = [createHash("sha256").update(challenge).digest(), key.id];
  const isFor = Buffer.concat([token.subarray(0, 2), token.subarray(34, 98)]).equals(Buffer.concat([Buffer.from([0, 2]), ...digests]));
  const options = { key: key.publicKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 48 };
  return isFor && verify("sha384", token.subarray(0, 98), options, token.subarray(98));
}
