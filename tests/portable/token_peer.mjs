// Blind tokens between the npm package and @cloudflare/privacypass-ts: node token_peer.mjs TOKENS_JS GIVEN, which is
// {issuer, key (base64), digest, ticket} as JSON. Prints what was found, as JSON.
import { pathToFileURL } from "node:url";
import * as peer from "@cloudflare/privacypass-ts";

const [port, given] = process.argv.slice(2);
const { challengeOf, draw, requestOf } = await import(pathToFileURL(port));
const { issuer: address, key, digest, ticket } = JSON.parse(given);
const { BlindRSAMode, Client, Issuer, Origin, TokenRequest, getPublicKeyBytes } = peer.publicVerif;
const { BLIND_RSA } = peer.TOKEN_TYPES;
const name = "issuer.example";
const context = Uint8Array.from(Buffer.from(digest, "hex"));
const origin = new Origin(BlindRSAMode.PSS);
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const tokenIn = (text) => peer.Token.deserialize(BLIND_RSA, Uint8Array.from(Buffer.from(text, "base64url")));
/** The key as its origin takes it. */
const keyOf = (spki) =>
  crypto.subtle.importKey("spki", peer.util.convertRSASSAPSSToEnc(spki), { name: "RSA-PSS", hash: "SHA-384" }, true, ["verify"]);
const found = {};

// Its issuer, this device, its origin.
const pair = await Issuer.generateKey(BlindRSAMode.PSS, {
  publicExponent: Uint8Array.of(1, 0, 1),
  modulusLength: 2048,
});
const spki = await getPublicKeyBytes(pair.publicKey);
const challenge = challengeOf(`https://${name}`, digest);
found.challenge = hex(challenge) === hex(origin.createTokenChallenge(name, context).serialize());
const { body, finish } = await requestOf(spki, challenge, draw(spki));
const issued = await new Issuer(BlindRSAMode.PSS, name, pair.privateKey, pair.publicKey).issue(
  TokenRequest.deserialize(BLIND_RSA, body),
);
const token = finish(issued.serialize());
found.oursFromItsIssuer = await origin.verify(tokenIn(token), pair.publicKey);

// This project's issuer, its client, its origin.
const ours = Uint8Array.from(Buffer.from(key, "base64"));
const { host } = new URL(address);
const asked = new Client(BlindRSAMode.PSS);
const request = await asked.createTokenRequest(origin.createTokenChallenge(host, context), ours);
const answer = await fetch(`${address}/v1/tokens`, {
  method: "POST",
  body: request.serialize(),
  headers: { "Content-Type": "application/private-token-request", "LDPKit-Ticket": ticket },
});
const response = asked.deserializeTokenResponse(new Uint8Array(await answer.arrayBuffer()));
const its = await asked.finalize(response);
found.itsFromOurIssuer = await origin.verify(its, await keyOf(ours));
found.its = Buffer.from(its.serialize()).toString("base64url");
console.log(JSON.stringify(found));
