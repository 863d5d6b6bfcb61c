/** A study: what is asked, what a device may answer, and the noise that protects the answer. */

import { fail } from "./errors.js";
import { canonicalJson, parseJson } from "./json.js";
import { loadMechanisms } from "./mechanisms/index.js";
import { PRIORS, checkPrior } from "./priors.js";
import {
  bounds, check, constant, day, decimal, hasOwn, identifier, isObject, listOf, record, tagged, text, version, whole,
} from "./shapes.js";

const MAX_BYTES = 1 << 20;

/** parameters by mechanism name → the shape of a mechanism. */
const named = (mechanisms) =>
  tagged(
    "name",
    Object.fromEntries(
      Object.entries(mechanisms).map(([name, own]) => [name, record({ name: constant(name), ...own })]),
    ),
  );
const models = (...names) =>
  tagged(
    "name",
    Object.fromEntries(
      names.map((name) => [name, record({ name: constant(name) }, { prior: record({}, PRIORS[name]) })]),
    ),
  );
const EPSILON = { epsilon: decimal(([n, d]) => n > 0n && n <= 64n * d) };
const NOISY = { ...EPSILON, delta: decimal(([n, d]) => n > 0n && n < d) };

const question = (ask, own, mechanism, ...names) => ({
  [ask]: record(
    { id: identifier, ask: constant(ask), ...own, mechanism, model: models(...names) },
    { text: text(1000) },
  ),
});

const NUMBER_FIELD = record({ id: identifier, bounds });
const YES_NO_FIELD = record({ id: identifier, ask: constant("yes_no") });
const response = (value, path) =>
  (isObject(value) && hasOwn(value, "ask") ? YES_NO_FIELD : NUMBER_FIELD)(value, path);
const RECORD = {
  features: listOf(NUMBER_FIELD, 1, 128, "id"),
  norm: decimal(([n, d]) => 1000n * n > d && n <= 1000n * d),
  response,
};
const LABELS = listOf(text(200), 2, 10000);
const COUNT = record({ count: whole(2, 1 << 20) });
// Choices by count are the whole numbers below it; only their number is kept.
const CHOICES = {
  choices: (value, path) => (isObject(value) ? { length: COUNT(value, path).count } : LABELS(value, path)),
};

const NUMBERS = ["normal", "exponential", "lognormal", "gamma", "weibull", "beta", "poisson", "geometric"];

const QUESTION = tagged("ask", {
  ...question("number", { bounds }, named({ laplace: EPSILON, gaussian: NOISY }), ...NUMBERS),
  ...question(
    "choice",
    CHOICES,
    named({
      randomized_response: EPSILON,
      oue: EPSILON,
      sue: EPSILON,
      subset_selection: EPSILON,
      olh: EPSILON,
      hadamard: EPSILON,
    }),
    "multinomial",
  ),
  ...question("yes_no", {}, named({ randomized_response: EPSILON }), "bernoulli"),
  ...question(
    "record",
    RECORD,
    named({
      gaussian_statistics: NOISY,
      gaussian_record: { ...NOISY, response_share: decimal(([n, d]) => n > 0n && n < d) },
    }),
    "linear_regression",
    "logistic_regression",
  ),
});

const STUDY = record(
  {
    format: constant("ldpkit.study/1"),
    id: identifier,
    version,
    title: text(200),
    questions: listOf(QUESTION, 1, 100, "id"),
  },
  // Data holders answer by command line.
  { purpose: text(5000), opens: day, closes: day, unit: constant("person") },
);

/** Parse and validate a study document, given as text or as bytes of UTF-8. Throws LdpkitError "study". */
export async function parseStudy(source) {
  const document = parse(source);
  const study = STUDY(document, "");
  const { opens, closes, questions } = study;
  check(!(opens > closes), "closes", "is before opens");
  questions.forEach((asked, index) => {
    if (asked.ask === "yes_no") asked.choices = ["no", "yes"];
    asked.path = `questions[${index}]`;
    if (asked.ask === "record") checkRecord(asked, asked.path);
    checkPrior(asked, asked.path);
  });
  await loadMechanisms(questions);
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

function checkRecord({ features, response, model }, path) {
  check(!features.some(({ id }) => id === response.id), `${path}.response.id`, "is also a feature");
  const needed = response.bounds ? "linear_regression" : "logistic_regression";
  check(model.name === needed, `${path}.model.name`, `must be ${needed}`);
}

const sha256 = async (text) =>
  hex(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));

export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
