/** Strict JSON in, canonical JSON out (RFC 8785, of strings, integers and booleans). */

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
