/** From one set of answers to one report. */

import { canonicalJson } from "./json.js";
import { mechanismFor } from "./mechanisms/index.js";
import { systemRandom, uniformBelow } from "./randomness.js";
import { checkNames } from "./shapes.js";
import { hex } from "./study.js";

/**
 * {id, body, answered}: one report with a fresh id, and the questions that it answers: all, or one that is
 * drawn whatever the answers are; then spaces behind it hide which by its size. All answers are checked
 * before any noise is drawn.
 */
export function perturbAnswers(
  study,
  answers,
  random = systemRandom,
  mechanisms = study.questions.map(mechanismFor),
) {
  const ids = study.questions.map((asked) => asked.id);
  checkNames(answers, ids);
  const ready = mechanisms.map((mechanism, index) => {
    const quantised = mechanism.quantise(answers[ids[index]]);
    const size = ids[index].length + 4 * Math.ceil(mechanism.payloadSize / 3);
    return { id: ids[index], size, draw: () => base64(mechanism.randomise(quantised, random)) };
  });
  const drawn = study.ask_one ? [ready[uniformBelow(ids.length, random)]] : ready;
  const payloads = Object.fromEntries(drawn.map(({ id, draw }) => [id, draw()]));
  const idBytes = 16;
  const id = hex(random(idBytes));
  const { version, digest } = study;
  const body = canonicalJson({ format: "ldpkit.report/1", id, study: study.id, version, digest, payloads });
  const spare = study.ask_one ? Math.max(...ready.map(({ size }) => size)) - drawn[0].size : 0;
  return { id, body: body + " ".repeat(spare), answered: Object.keys(payloads) };
}

const base64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
