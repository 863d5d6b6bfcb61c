// Runs the RFCs' vectors of blind signatures and tokens on the JavaScript port: node token_vectors.mjs TOKENS_JS FOLDER.
// Prints how many of each file fit, as JSON.
import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { join as path } from "node:path";
import { pathToFileURL } from "node:url";

// Node 18 has it, but not under its name in browsers.
globalThis.crypto ??= webcrypto;

const [port, folder] = process.argv.slice(2);
const { blind, bytesOf, encode, finalise, integer, inverse, spread } = await import(new URL("blind.js", pathToFileURL(port)));
const { challengeOf, requestOf } = await import(pathToFileURL(port));
const load = (name) => JSON.parse(readFileSync(path(folder, `${name}.json`), "utf8"));
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const bytes = (text) => bytesOf(text.replace("0x", ""));
// One has no salt, which is no digits.
const some = (text) => (text ? bytes(text) : new Uint8Array());

async function signatureFits({ n, input_msg, salt, encoded_msg, inv, blinded_msg, blind_sig, sig }) {
  const modulus = BigInt(n);
  const size = blinded_msg.length / 2;
  const secret = inverse(BigInt(inv), modulus);
  const encoded = await encode(bytes(input_msg), some(salt), size);
  const signature = finalise(encoded, secret, modulus, integer(bytes(blind_sig)));
  const beside = finalise(encoded, secret, modulus, integer(bytes(blind_sig)) ^ 1n);
  const above = finalise(encoded, secret, modulus, integer(bytes(blind_sig)) + modulus);
  return (
    hex(spread(blind(encoded, secret, modulus), size)) === blinded_msg &&
    hex(spread(signature, size)) === sig &&
    (!encoded_msg || hex(spread(encoded, size)) === encoded_msg) &&
    beside === false &&
    above === false
  );
}

async function tokenFits({ pkS, token_challenge, nonce, blind: secret, salt, token_request, token_response, token }) {
  const drawn = { secret: integer(bytes(secret)), nonce: bytes(nonce), salt: bytes(salt) };
  const { body, finish } = await requestOf(bytes(pkS), bytes(token_challenge), drawn);
  const found = Buffer.from(finish(bytes(token_response)), "base64url").toString("hex");
  const other = bytes(token_response).map((byte, index) => byte ^ (index === 255));
  return hex(body) === token_request && found === token && finish(other) === "" && finish(other.subarray(1)) === "";
}

/** The device's challenges name no origin. */
function challengeFits(vector) {
  const challenge = vector["token-challenge-0"];
  const origin = Buffer.from("origin.example").toString("hex");
  const [context] = /[0-9a-f]{64}(?=000e)/.exec(challenge.slice(2 * 18)) ?? [];
  return hex(challengeOf("https://issuer.example/a", context)) === challenge.replace(`000e${origin}`, "0000");
}

const counted = async (name, fits) => {
  const vectors = load(name);
  const found = await Promise.all(vectors.map(fits));
  return [found.filter(Boolean).length, vectors.length];
};
console.log(
  JSON.stringify({
    rfc9474: await counted("rfc9474", signatureFits),
    rfc9578_public: await counted("rfc9578_public", tokenFits),
    rfc9577_header: await counted("rfc9577_header", challengeFits),
  }),
);
