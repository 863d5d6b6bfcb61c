/** Strict JSON in, canonical JSON out (RFC 8785, of strings, integers and booleans). */

const TOKENS = /"(?:[^"\\]|\\.)*"(?:\s*:)?|[{}]|-?\d[\d.eE+-]*/g;

/**
 * Parse JSON; throws SyntaxError also for a key that stands twice. A number that is not written as an
 * integer reads as null.
 */
export function parseJson(text) {
  JSON.parse(text);
  const keys = [];
  const integersOnly = text.replace(TOKENS, (token) => {
    if (token === "{") keys.push(new Set());
    else if (token === "}") keys.pop();
    else if (token.endsWith(":")) refuseDuplicate(keys.at(-1), token.slice(0, -1));
    else if (token[0] !== '"' && /[.eE]/.test(token)) return "null";
    return token;
  });
  return JSON.parse(integersOnly);
}

function refuseDuplicate(keys, token) {
  const key = JSON.parse(token);
  if (keys.has(key)) throw new SyntaxError("duplicate key");
  keys.add(key);
}

/** The canonical text of a plain value. */
export function canonicalJson(value) {
  if (Array.isArray(value)) return `[${value.map(canonicalJson)}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const pairs = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`);
  return `{${pairs}}`;
}
