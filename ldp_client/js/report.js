/** From one set of answers to one report. */

import { fail } from "./errors.js";
import { canonicalJson } from "./json.js";
import { mechanismFor } from "./mechanisms/index.js";
import { systemRandom } from "./randomness.js";
import { hasOwn } from "./shapes.js";
import { hex } from "./study.js";

const FORMAT = "ldpkit.report/1";
const ID_BYTES = 16;

/** {id, body}: one report with a fresh id. All answers are checked before any noise is drawn. */
export function perturbAnswers(study, answers, random = systemRandom) {
  const ids = study.questions.map(({ id }) => id);
  for (const id of ids) if (!hasOwn(answers, id)) fail("answer", "is missing", id);
  for (const id in answers) if (!ids.includes(id)) fail("answer", "is not asked", id);
  const ready = study.questions.map((question) => {
    const { quantise, randomise } = mechanismFor(question);
    const quantised = quantise(answers[question.id]);
    return () => [question.id, base64(randomise(quantised, random))];
  });
  const payloads = Object.fromEntries(ready.map((draw) => draw()));
  const id = hex(random(ID_BYTES));
  const { version, digest } = study;
  const body = canonicalJson({ format: FORMAT, id, study: study.id, version, digest, payloads });
  return { id, body };
}

const base64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
