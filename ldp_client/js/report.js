/** From one set of answers to one report. */

import { fail } from "./errors.js";
import { canonicalJson } from "./json.js";
import { mechanismFor } from "./mechanisms/index.js";
import { systemRandom, uniformBelow } from "./randomness.js";
import { hasOwn } from "./shapes.js";
import { hex } from "./study.js";

const FORMAT = "ldpkit.report/1";
const ID_BYTES = 16;

/**
 * {id, body, answered}: one report with a fresh id, and the questions that it answers: all, or one that is
 * drawn whatever the answers are. All answers are checked before any noise is drawn.
 */
export function perturbAnswers(study, answers, random = systemRandom, mechanisms = study.questions.map(mechanismFor)) {
  const ids = study.questions.map((asked) => asked.id);
  for (const id of ids) if (!hasOwn(answers, id)) fail("answer", "has no answer", id);
  for (const id in answers) if (!ids.includes(id)) fail("answer", "is not a question of this study", id);
  const ready = ids.map((id, index) => [id, mechanisms[index], mechanisms[index].quantise(answers[id])]);
  const drawn = study.ask_one ? [ready[uniformBelow(ids.length, random)]] : ready;
  const payloads = drawn.map(([id, mechanism, quantised]) => [id, base64(mechanism.randomise(quantised, random))]);
  const id = hex(random(ID_BYTES));
  const { version, digest } = study;
  const body = canonicalJson({ format: FORMAT, id, study: study.id, version, digest, payloads: Object.fromEntries(payloads) });
  return { id, body, answered: drawn.map(([name]) => name) };
}

/** Spaces behind a report's text, so that its size does not tell which question was drawn. */
export function padding({ questions }, mechanisms, answered) {
  const size = ({ id }, index) => id.length + 4 * Math.ceil(mechanisms[index].payloadSize / 3);
  const sizes = questions.map(size);
  const own = questions.findIndex(({ id }) => id === answered[0]);
  return " ".repeat(Math.max(...sizes) - sizes[own]);
}

const base64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
