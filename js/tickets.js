/**
 * Blind tokens (RFC 9578, type 2): an issuer gives one for a ticket, and cannot link the two.
 *
 * The signatures are RSABSSA-SHA384-PSS (RFC 9474) with e = 65537. Some big integers take longer than others: all here
 * are the device's own, drawn anew for each signature.
 */

import { hash, hex, join, utf8 } from "./encoding.js";
import { systemRandom, take } from "./randomness.js";
import { exchange } from "./upload.js";

const TYPE = [0, 2];
const SIZE = 256;
const HASH_BYTES = 48;

export const integer = (bytes) => BigInt(`0x${hex(bytes)}`);

/** Of hexadecimal digits. */
export const bytesOf = (digits) => Uint8Array.from(digits.match(/../g), (one) => parseInt(one, 16));

/** An integer in that many bytes, the largest first. */
export const spread = (number, size) => bytesOf(number.toString(16).padStart(2 * size, "0"));

/** What is drawn for a token of that key, and seen by nobody else. */
export function draw(spki, random = systemRandom) {
  let secret;
  do secret = integer(take(random, SIZE));
  while (!secret || secret >= modulusOf(spki));
  return { secret, nonce: take(random, 32), salt: take(random, 48) };
}

/** Return {body, finish}: the request, and from the answer the token, "" if the key did not sign it. */
export async function requestOf(spki, challenge, { secret, nonce, salt }) {
  const modulus = modulusOf(spki);
  const id = await hash("SHA-256", spki);
  const input = join(TYPE, nonce, await hash("SHA-256", challenge), id);
  const encoded = await encode(input, salt, SIZE);
  return {
    body: join(TYPE, [id.at(-1)], spread(blind(encoded, secret, modulus), SIZE)),
    finish(signed) {
      const signature = signed.length === SIZE && finalise(encoded, secret, modulus, integer(signed));
      const token = signature ? join(input, spread(signature, SIZE)) : [];
      return btoa(String.fromCharCode(...token)).replace(/[+/]/g, (sign) => (sign > "+" ? "_" : "-"));
    },
  };
}

/** TokenChallenge (RFC 9577, section 2.1.1): of one issuer, and of this version of this study alone. */
export function challengeOf(issuer, digest) {
  const name = utf8(issuer.split("/")[2]);
  return join(TYPE, [name.length >> 8, name.length], name, [32], bytesOf(digest), [0, 0]);
}

/**
 * Ask for a report's token, once, and once more with the key that the issuer names: {changes, again} as of upload.js.
 * What was drawn is durable before it is used: asked again, the issuer gives the same for the same ticket.
 */
export async function obtain(transport, report, move) {
  const { id, state, digest, ticket, channel, asked = { place: 0 } } = report;
  const { issuer, keys } = channel.tickets;
  // What the person enters is asked with.
  if (!ticket) return { changes: { state: "ticketless" } };
  const spki = bytes64(keys[asked.place].key);
  asked.drawn ??= draw(spki);
  // The person may have withdrawn meanwhile.
  if ((await move(id, { [state]: { asked } }))?.state !== state) return { changes: {} };
  const { body, finish } = await requestOf(spki, challengeOf(issuer, digest), asked.drawn);
  const type = { "Content-Type": "application/private-token-request" };
  const options = { method: "POST", headers: { ...type, "LDPKit-Ticket": ticket }, body };
  const answer = await exchange(transport, `${issuer.replace(/\/+$/, "")}/v1/tokens`, options);
  const token = finish(new Uint8Array(answer.bytes));
  if (token) {
    const { place } = asked;
    return { changes: { token, asked: { place }, ticket: "", state: "queued", reason: "" } };
  }
  // Said with token-key-other, and by its id: a study may name the issuer's keys in another order.
  const ids = await Promise.all(keys.map(({ key }) => hash("SHA-256", bytes64(key))));
  const place = ids.findIndex((id) => id.at(-1) === answer.said.key_id);
  if (!asked.isOther && keys[place]) {
    return obtain(transport, { ...report, asked: { place, isOther: true } }, move);
  }
  // ticket-needed, ticket-invalid, ticket-spent: another one will be.
  const left = /^ticket-/.test(answer.problem) ? "ticketless" : "queued";
  return { changes: { state: left, reason: `issuer ${answer.reason}` }, again: answer.again };
}

const bytes64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt());

// Behind the modulus stands the exponent, in five bytes.
const modulusOf = (spki) => integer(spki.slice(-261, -5));

/** EMSA-PSS (RFC 8017, section 9.1.1) for a modulus of that many whole bytes: the integer to sign. */
export async function encode(message, salt, size) {
  const digest = await hash("SHA-384", new Uint8Array(8), await hash("SHA-384", message), salt);
  const padded = [...new Uint8Array(size - HASH_BYTES - salt.length - 2), 1, ...salt];
  const mask = [];
  for (let count = 0; mask.length < padded.length; count++) {
    mask.push(...(await hash("SHA-384", digest, [0, 0, 0, count])));
  }
  const masked = padded.map((byte, index) => byte ^ mask[index]);
  // One bit less than the modulus.
  masked[0] &= 127;
  return integer([...masked, ...digest, 0xbc]);
}

/** The integer to be signed blindly; 0 if a factor is shared with the modulus (RFC 9474, 4.2). */
export function blind(encoded, secret, modulus) {
  const hasInverse = (encoded * secret * inverse(encoded * secret, modulus)) % modulus <= 1n;
  return hasInverse ? (encoded * raised(secret, modulus)) % modulus : 0n;
}

/** The signature of what is encoded, from that of what was sent; false where it is none. */
export function finalise(encoded, secret, modulus, signed) {
  const signature = (signed * inverse(secret, modulus)) % modulus;
  return signed < modulus && raised(signature, modulus) === encoded && signature;
}

/** To the power of 65537. */
function raised(number, modulus) {
  let power = number;
  for (let count = 0; count < 16; count++) power = (power * power) % modulus;
  return (power * number) % modulus;
}

/** Euclid's: of what shares no factor with the modulus. */
export function inverse(number, modulus) {
  let [left, rest, before, after] = [modulus, number, 0n, 1n];
  while (rest) {
    const times = left / rest;
    [left, rest, before, after] = [rest, left - times * rest, after, before - times * after];
  }
  return (before + modulus) % modulus;
}
