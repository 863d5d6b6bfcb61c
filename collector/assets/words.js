/** What the payloads of a report say, in plain words. */

import { mechanismFor } from "../../ldp_client/js/index.js";

const READERS = {
  laplace: number,
  gaussian: number,
  randomized_response: choice,
  oue: choices,
  sue: choices,
  subset_selection: choices,
  olh: code,
  hadamard: code,
  gaussian_statistics: products,
  gaussian_record: entries,
};

/** [question's words, what its payload says] for each question. */
export function inWords(study, body) {
  const { payloads } = JSON.parse(body);
  return study.questions.map((question) => {
    const payload = payloads[question.id];
    return [question.text ?? question.id, payload ? said(question, payload) : "not in the report: chance drew another question"];
  });
}

function said(question, payload) {
  const { name, of } = question.mechanism;
  const bytes = Uint8Array.from(atob(payload), (letter) => letter.charCodeAt(0));
  return READERS[of ?? name](question, bytes);
}

function number(question, bytes) {
  const [low, high] = question.bounds.map(([, , nearest]) => nearest);
  const steps = new DataView(bytes.buffer).getInt32(0) / Number(mechanismFor(question).integers.levels);
  return (low + steps * (high - low)).toLocaleString("en", { maximumSignificantDigits: 5 });
}

function choice({ choices }, bytes) {
  const index = bytes.reduce((total, byte) => 256 * total + byte, 0);
  return Array.isArray(choices) ? choices[index] : String(index);
}

function choices(question, bytes) {
  const labels = Array.from(question.choices, (label, index) => label ?? String(index));
  const marked = labels.filter((_, index) => (bytes[index >> 3] >> (index & 7)) & 1);
  return marked.length ? `marked: ${marked.join("; ")}` : "none marked";
}

function products(_, bytes) {
  return `${bytes.length / 4} numbers, each a product of two entries plus noise`;
}

function code(_, bytes) {
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `the code ${digits}, which stands for many choices`;
}

function entries({ features, response }, bytes) {
  const names = [...features, ...(response.bounds ? [response] : [])].map(({ id }) => id);
  const numbers = `a noisy number for each of ${names.join(", ")}`;
  return response.bounds ? numbers : `${numbers}; ${response.id}: ${bytes.at(-1) ? "yes" : "no"}`;
}
