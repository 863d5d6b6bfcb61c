/** Bytes, their digests and digits; strict JSON in, canonical JSON out (RFC 8785, of strings, integers, booleans). */

export const utf8 = (string) => new TextEncoder().encode(string);

export const join = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));

/** The digest of parts, one after the other. */
export const hash = async (kind, ...parts) => new Uint8Array(await crypto.subtle.digest(kind, join(...parts)));

export const hex = (bytes) => [...bytes].map((byte) => (byte + 256).toString(16).slice(1)).join("");

const TOKENS = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d[\d.eE+-]*/g;

/** Parse JSON strictly: SyntaxError for a repeated key, null for a number not written as an integer. */
export function parseJson(text) {
  JSON.parse(text);
  let keys = 0;
  const integersOnly = text.replace(TOKENS, (token, colon) => {
    if (colon) keys++;
    return token[0] !== '"' && /[.eE]/.test(token) ? "null" : token;
  });
  // Of a key that stands twice only one is read. The whole is read as the entry "" of an object.
  const parsed = JSON.parse(integersOnly, function (_, value) {
    if (!Array.isArray(this)) keys--;
    return value;
  });
  if (keys !== -1) throw new SyntaxError();
  return parsed;
}

/** The canonical text of a plain value. */
export function canonicalJson(value) {
  if (Array.isArray(value)) return `[${value.map(canonicalJson)}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const pairs = Object.keys(value).sort().map((key) => `${canonicalJson(key)}:${canonicalJson(value[key])}`);
  return `{${pairs}}`;
}
