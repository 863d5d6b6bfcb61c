/** The texts inside a request through a relay, for each base URL that is given. */

import { webcrypto } from "node:crypto";
import { oblivious } from "../../js/oblivious.js";

const found = [];
const { encode } = TextEncoder.prototype;
TextEncoder.prototype.encode = function (text) {
  if (typeof text === "string" && text.length) found.at(-1)?.push(text);
  return encode.call(this, text);
};
globalThis.crypto ??= webcrypto;
globalThis.fetch = async () => new Response(null, { status: 502 });
const { publicKey } = await crypto.subtle.generateKey({ name: "X25519" }, false, ["deriveBits"]);
const point = new Uint8Array(await crypto.subtle.exportKey("raw", publicKey));
const keys = btoa(String.fromCharCode(1, 0, 32, ...point, 0, 4, 0, 1, 0, 1));
const transport = await oblivious({ relay: "https://relay.example", keys });
for (const collector of process.argv.slice(2)) {
  found.push([]);
  await transport(`${collector}/v1/studies/s/reports/r`, { method: "PUT", headers: {}, body: "{}" });
}
console.log(JSON.stringify(found));
