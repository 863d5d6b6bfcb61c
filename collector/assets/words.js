/** What the payloads of a report say, in plain words. */

import { mechanismFor } from "./ldpkit/index.js";

const READERS = { laplace: number, randomized_response: choice, oue: choices, gaussian_statistics: products };

/** [question's words, what its payload says] for each question. */
export function inWords(study, body) {
  const { payloads } = JSON.parse(body);
  return study.questions.map((question) => {
    const bytes = Uint8Array.from(atob(payloads[question.id]), (letter) => letter.charCodeAt(0));
    return [question.text ?? question.id, READERS[question.mechanism.name](question, bytes)];
  });
}

function number(question, bytes) {
  const [low, high] = question.bounds.map(([, , nearest]) => nearest);
  const steps = new DataView(bytes.buffer).getInt32(0) / Number(mechanismFor(question).integers.levels);
  return (low + steps * (high - low)).toLocaleString("en", { maximumSignificantDigits: 5 });
}

function choice({ choices }, bytes) {
  return choices[bytes.reduce((index, byte) => 256 * index + byte, 0)];
}

function choices(question, bytes) {
  const marked = question.choices.filter((_, index) => (bytes[index >> 3] >> (index & 7)) & 1);
  return marked.length ? `marked: ${marked.join("; ")}` : "none marked";
}

function products(_, bytes) {
  return `${bytes.length / 4} numbers, each a product of two entries plus noise`;
}
