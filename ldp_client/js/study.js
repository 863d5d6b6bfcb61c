/** A study: what is asked, what a device may answer, and the noise that protects the answer. */

import { fail } from "./errors.js";
import { canonicalJson, parseJson } from "./json.js";
import { LOADERS, readMechanism } from "./mechanisms/index.js";
import {
  bounds, check, day, decimal, hasOwn, identifier, isObject, listOf, oneOf, record, tagged, text, whole,
} from "./shapes.js";

const MAX_BYTES = 1 << 20;

/** A shape for what is read once the code that knows it is loaded. */
const later = (value) => value;
const NAMED = Object.fromEntries(Object.keys(LOADERS).map((name) => [name, later]));

const question = (own, ...models) =>
  record(
    {
      id: identifier,
      ask: later,
      ...own,
      mechanism: tagged("name", NAMED),
      model: record({ name: oneOf(...models) }, { prior: later }),
    },
    { text: text(1000) },
  );

const NUMBER_FIELD = record({ id: identifier, bounds });
const YES_NO_FIELD = record({ id: identifier, ask: oneOf("yes_no") });
const LABELS = listOf(text(200), 2, 10000);
const COUNT = record({ count: whole(2, 1 << 20) });

const QUESTION = tagged("ask", {
  number: question(
    { bounds }, "normal", "exponential", "lognormal", "gamma", "weibull", "beta", "poisson", "geometric",
  ),
  choice: question(
    {
      // Choices by count are the whole numbers below it; only their number is kept.
      choices: (value, path) => (isObject(value) ? { length: COUNT(value, path).count } : LABELS(value, path)),
    },
    "multinomial",
  ),
  yes_no: question({}, "bernoulli"),
  record: question(
    {
      features: listOf(NUMBER_FIELD, 1, 128, "id"),
      norm: decimal(([n, d]) => 1000n * n > d && n <= 1000n * d),
      response: (value, path) =>
        (isObject(value) && hasOwn(value, "ask") ? YES_NO_FIELD : NUMBER_FIELD)(value, path),
    },
    "linear_regression", "logistic_regression",
  ),
});

const STUDY = record(
  {
    format: oneOf("ldpkit.study/1"),
    id: identifier,
    version: whole(1, 1e6),
    title: text(200),
    questions: listOf(QUESTION, 1, 100, "id"),
  },
  { purpose: text(5000), opens: day, closes: day, ask_one: oneOf(true, false) },
);

/** Parse and validate a study document, given as text or as bytes of UTF-8. Throws LdpkitError "study". */
export async function parseStudy(source) {
  const document = parse(source);
  const study = STUDY(document, "");
  check(!(study.opens > study.closes), "closes", "is before opens");
  for (const [index, asked] of study.questions.entries()) {
    asked.path = `questions[${index}]`;
    asked.mechanism = await readMechanism(asked);
    if (asked.ask === "yes_no") asked.choices = ["no", "yes"];
    if (asked.response) checkRecord(asked);
    if (asked.model.prior !== undefined) (await import("./priors.js")).checkPriors(asked);
  }
  const canonical = canonicalJson(document);
  return { ...study, document, canonical, digest: await sha256(canonical) };
}

function parse(source) {
  check(source.length <= MAX_BYTES, "", "is too large");
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return parseJson(typeof source === "string" ? source : decoder.decode(source));
  } catch {
    return fail("study", "not well-formed JSON in UTF-8");
  }
}

function checkRecord({ features, response, model, path }) {
  check(!features.some(({ id }) => id === response.id), `${path}.response.id`, "is also a feature");
  oneOf(response.bounds ? "linear_regression" : "logistic_regression")(model.name, `${path}.model.name`);
}

const sha256 = async (text) =>
  hex(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));

export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
