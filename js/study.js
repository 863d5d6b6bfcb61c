/** A study: what is asked, what a device may answer, and the noise that protects the answer. */

import { canonicalJson, hash, hex, parseJson, utf8 } from "./encoding.js";
import { fail, unloaded } from "./errors.js";
import { checkTogether, kindOf, loadMechanisms } from "./mechanisms/index.js";
import { check, identifier, ignored, isObject, isText, listOf, oneOf, record, text, whole } from "./shapes.js";

/** A shape for what is read later. */
const later = (value) => value;

/** A question: what its mechanism's kind of question has beside that which all have. */
function question(value, path) {
  check(isObject(value), path);
  oneOf("number", "choice", "yes_no", "record")(value.ask, `${path}.ask`);
  const { fields, mechanism, more, complete } = kindOf(value, path);
  // The model is for analysts.
  const optional = { text: text(1000), model: ignored, ...more };
  const asked = record({ id: identifier, ask: later, ...fields, mechanism }, optional)(value, path);
  return { ...(complete?.(asked, path) ?? asked), path };
}

// What few studies have is read by a file of its own.
const PARTS =
  "opens closes owner contact ethics consent retention sections sample_one_question public channel".split(" ");

const STUDY = record(
  {
    format: oneOf("ldpkit.study/1"),
    id: identifier,
    version: whole(1, 1e6),
    title: text(200),
    questions: listOf(question, 1, 100, "id"),
  },
  // Data holders answer by command line.
  { purpose: text(5000), respondent: oneOf("person"), ...Object.fromEntries(PARTS.map((name) => [name, later])) },
);

/** Parse and validate a study document, as text or bytes of UTF-8, as index.d.ts says. */
export const parseStudy = (source) => parsed(source).catch(unloaded);

/** Return the study that the collector publishes under an id, as index.d.ts says. */
export async function fetchStudy({ collector, transport }, id) {
  const { ask } = await import("./upload.js").catch(unloaded);
  const response = await ask(transport, `${collector}/v1/studies/${encodeURIComponent(id)}`);
  const { ok, status, headers } = response;
  if (status === 410 || headers.get("LDPKit-Study") === "closed") fail("closed", "takes no reports");
  if (!ok) fail("input", `was not found: HTTP status ${status}`, "study");
  const study = await parseStudy(await response.text());
  if (study.id !== id) fail("input", `is another: ${study.id}`, "study");
  return study;
}

async function parsed(source) {
  if (!globalThis.crypto?.subtle) fail("input", "needs https");
  const document = parse(source);
  await loadMechanisms(document);
  // What a person reads, in each language; it is answered in its own.
  const plain = document?.languages ? (await import("./languages.js")).each(document) : [document];
  const [study] = await Promise.all(plain.map(readParts));
  for (const asked of study.questions) await checkTogether(asked);
  const canonical = canonicalJson(document);
  return frozen({ ...study, document, canonical, digest: hex(await hash("SHA-256", utf8(canonical))) });
}

/** Choices that are sorted to be shown would be others under the same digest. */
function frozen(value) {
  // Bytes and modules have a tag, and cannot be; what is no object is.
  if (!(value?.[Symbol.toStringTag] ?? Object.isFrozen(value))) Object.values(Object.freeze(value)).forEach(frozen);
  return value;
}

async function readParts(document) {
  const study = STUDY(document, "");
  if (PARTS.some((name) => name in study)) (await import("./study_parts.js")).read(study);
  return study;
}

function parse(source) {
  // At most a mebibyte.
  check(source?.length <= 1 << 20);
  try {
    const strict = { fatal: true, ignoreBOM: true };
    return parseJson(isText(source) ? source : new TextDecoder("utf8", strict).decode(source));
  } catch {
    check(false);
  }
}
