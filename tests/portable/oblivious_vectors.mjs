// The appendix of RFC 9458 in the npm package: node oblivious_vectors.mjs OBLIVIOUS_JS APPENDIX_JSON. Prints what differs.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [module, file] = process.argv.slice(2);
const { binary, encapsulate, plain } = await import(pathToFileURL(module));
const vector = JSON.parse(readFileSync(file));
const bytes = (name) => new Uint8Array(Buffer.from(vector[name], "hex"));
const base64url = (name) => Buffer.from(vector[name], "hex").toString("base64url");
const hex = (found) => Buffer.from(found).toString("hex");

const jwk = { kty: "OKP", crv: "X25519", x: base64url("ephemeral_public_key") };
const imported = (key, uses) => crypto.subtle.importKey("jwk", key, { name: "X25519" }, true, uses);
const ephemeral = {
  publicKey: await imported(jwk, []),
  privateKey: await imported({ ...jwk, d: base64url("ephemeral_secret_key") }, ["deriveBits"]),
};
const asked = () => encapsulate(bytes("key_config"), bytes("request_bhttp"), ephemeral);
const { message, open } = await asked();
const answer = await open(bytes("encapsulated_response"));
const refused = async (work) => work().then(() => "taken", () => "refused");
const changed = bytes("encapsulated_response");
changed[20] ^= 1;
const throws = (work) => {
  try {
    work();
    return false;
  } catch {
    return true;
  }
};
const read = plain(Uint8Array.from([1, 0x40, 200, 4, 1, 97, 1, 98, 2, 104, 105, 0, 0, 0]));
const request = binary(["GET", "https", "example.com", "/"], {}, "", [40]);
console.log(
  JSON.stringify({
    request: hex(message) === vector.encapsulated_request,
    answer: hex(answer) === vector.response_bhttp,
    status: plain(Uint8Array.from([...answer, 0, 0])).status,
    changed: await refused(async () => (await asked()).open(changed)),
    other: await refused(async () => (await encapsulate(bytes("key_config"), bytes("request_bhttp"))).open(bytes("encapsulated_response"))),
    read: [read.status, read.headers.get("a"), await read.text()],
    padded: [request.length, hex(request).startsWith(vector.request_bhttp)],
    long: throws(() => binary(["GET", "https", "example.com", "/"], {}, "x".repeat(256 << 10))),
    sizes: [0, 4000, 4096, 16000, 60000, 250000].map((bytes) => binary(["GET", "https", "example.com", "/"], {}, "x".repeat(bytes)).length >> 10),
    none: [[], [0], [1, 0x40], [1, 0x40, 200, 5, 1, 97], [1, 0x40, 200, 0, 9]].map((one) => throws(() => plain(Uint8Array.from(one)))),
  }),
);
