/**
 * Blind RSA signatures, RSABSSA-SHA384-PSS (RFC 9474) with e = 65537.
 *
 * Some big integers take longer than others: all here are the device's own, drawn anew for each signature.
 */

import { hex, join } from "./digest.js";

const HASH_BYTES = 48;
const TWICE = 16;

/** The digest of parts, one after the other. */
export const hash = async (kind, ...parts) => new Uint8Array(await crypto.subtle.digest(kind, join(...parts)));

export const integer = (bytes) => BigInt(`0x${hex(bytes)}`);

/** Of hexadecimal digits. */
export const bytesOf = (digits) => Uint8Array.from(digits.match(/../g), (one) => parseInt(one, 16));

/** An integer in that many bytes, the largest first. */
export const spread = (number, size) => bytesOf(number.toString(16).padStart(2 * size, "0"));

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
  for (let count = 0; count < TWICE; count++) power = (power * power) % modulus;
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
