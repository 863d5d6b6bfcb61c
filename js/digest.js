/** Bytes: of a text, joined, their digest, and their digits. */

export const utf8 = (string) => new TextEncoder().encode(string);

export const join = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));

/** In hexadecimal digits. */
export const sha256 = async (bytes) => hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));

export const hex = (bytes) => [...bytes].map((byte) => (byte + 256).toString(16).slice(1)).join("");
