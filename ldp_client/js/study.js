/** A study: what is asked, what a device may answer, and the noise that protects the answer. */

import { fail, orElse } from "./errors.js";
import { canonicalJson, parseJson } from "./json.js";
import { checkTogether, kindOf, loadMechanisms } from "./mechanisms/index.js";
import { check, day, identifier, isObject, isText, listOf, oneOf, record, text, whole } from "./shapes.js";

/** A shape for what is read later. */
const later = (value) => value;

/** A question: what its mechanism's kind of question has beside that which all have. */
function question(value, path) {
  check(isObject(value), path);
  oneOf("number", "choice", "yes_no", "record")(value.ask, `${path}.ask`);
  const { fields, models, mechanism, more, complete } = kindOf(value, path);
  const shape = { id: identifier, ask: later, ...fields, mechanism };
  const optional = { text: text(1000), ...more };
  // A number without a model has no law.
  (fields.bounds ? optional : shape).model = record({ name: oneOf(...models) }, { prior: later });
  const asked = record(shape, optional)(value, path);
  return complete?.(asked, path) ?? asked;
}

const STUDY = record(
  {
    format: oneOf("ldpkit.study/1"),
    id: identifier,
    version: whole(1, 1e6),
    title: text(200),
    questions: listOf(question, 1, 100, "id"),
  },
  // Data holders answer by command line.
  {
    purpose: text(5000),
    opens: day,
    closes: day,
    ask_one: oneOf(true, false),
    public: later,
    paper: later,
    owner: later,
    contact: later,
    ethics: later,
    retention: later,
    unit: oneOf("person"),
  },
);

/**
 * Parse and validate a study document, given as text or as bytes of UTF-8. Throws LdpkitError "study", or "module"
 * where a part that the study needs does not load.
 */
export const parseStudy = (source) => parsed(source).catch(unloaded);

const unloaded = orElse("module", "a part did not load: try again");

async function parsed(source) {
  if (!globalThis.crypto?.subtle) fail("input", "needs https");
  const document = parse(source);
  await loadMechanisms(document);
  const spoken = document?.languages && (await import("./languages.js"));
  // What a person reads, in each language; it is answered in its own.
  const told = spoken ? spoken.each(document) : [document];
  const [study] = await Promise.all(told.map(readParts));
  study.told = told;
  check(!(study.opens > study.closes), "closes");
  for (const [index, asked] of study.questions.entries()) {
    asked.path = `questions[${index}]`;
    await checkTogether(asked);
    if (asked.model?.prior !== undefined) (await import("./priors.js")).checkPriors(asked);
  }
  if ("paper" in study) (await import("./paper.js")).read(study);
  const canonical = canonicalJson(document);
  return { ...study, document, canonical, digest: await sha256(utf8(canonical)) };
}

async function readParts(document) {
  const study = STUDY(document, "");
  if ("public" in study) (await import("./public.js")).read(study);
  if (/owner|contact|ethics|retention/.test(Object.keys(study))) (await import("./asker.js")).read(study);
  return study;
}

function parse(source) {
  // At most a mebibyte.
  check(source?.length <= 1 << 20, "");
  try {
    const strict = { fatal: true, ignoreBOM: true };
    return parseJson(isText(source) ? source : new TextDecoder("utf8", strict).decode(source));
  } catch {
    check(false, "");
  }
}

export const utf8 = (string) => new TextEncoder().encode(string);

/** In hexadecimal digits. */
export const sha256 = async (bytes) =>
  hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));

export const hex = (bytes) => [...bytes].map((byte) => (byte + 256).toString(16).slice(1)).join("");
