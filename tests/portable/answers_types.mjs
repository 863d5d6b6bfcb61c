// What is made of answers whose media type a proxy spelt otherwise: node answers_types.mjs OBLIVIOUS_JS UPLOAD_JS.
import { webcrypto } from "node:crypto";
import { pathToFileURL } from "node:url";

globalThis.crypto ??= webcrypto;
const [{ oblivious }, { exchange }] = await Promise.all(process.argv.slice(2).map((one) => import(pathToFileURL(one))));
const { publicKey } = await crypto.subtle.generateKey({ name: "X25519" }, false, ["deriveBits"]);
const point = new Uint8Array(await crypto.subtle.exportKey("raw", publicKey));
const keys = btoa(String.fromCharCode(1, 0, 32, ...point, 0, 4, 0, 1, 0, 1));
const relayed = await oblivious({ relay: "https://relay.example/x", keys });
const report = { id: "aa", publisher: "c" };
const answering = (type, body) => async () =>
  new Response(body, { headers: { ...(type && { "Content-Type": type }), "LDPKit-Collector": "c" } });

/** Whether the relay's answer is opened, which fails: nobody encapsulated it. */
async function opens(type) {
  globalThis.fetch = answering(type, new Uint8Array(64));
  const asked = relayed("https://c.example/v1/studies/s/reports/aa", { method: "DELETE" });
  return asked.then(() => false, () => true);
}

/** What a receipt says, "none" where it is taken for none. */
const result = async (type) => {
  const transport = answering(type, JSON.stringify({ id: "aa", result: "stored" }));
  return (await exchange(transport, "https://c.example/v1/studies/s", {}, report)).result || "none";
};

const spelt = (type) => [type, type.toUpperCase(), `${type}; charset=utf-8`, `${type} ;a=b`];
const others = (type) => [`${type}x`, `text/${type}`, ""];
const found = [];
// One after the other: `fetch` is the whole program's.
for (const type of [...spelt("message/ohttp-res"), ...others("message/ohttp-res")]) found.push(await opens(type));
const receipts = await Promise.all([...spelt("application/json"), ...others("application/json")].map(result));
console.log(JSON.stringify({ relayed: found, receipts }));
