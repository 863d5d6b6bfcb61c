/** Paper mode, which a device checks and does not use. ldp_client/documents/paper.py is its twin. */

import { add, parseDecimal } from "./rational.js";
import { check, identifier, isText, listOf, record, text } from "./shapes.js";

const MOST = 20;
const FRACTION = /^(\d{1,9})\/(\d{1,9})$/;

/** A fraction or a decimal, from 0 to 1. */
function probability(value, path) {
  check(isText(value), path);
  const [, over, under] = FRACTION.exec(value) ?? [];
  const number = over ? [BigInt(over), BigInt(under)] : parseDecimal(value);
  check(number && number[1] > 0n && number[0] >= 0n && number[0] <= number[1], path);
  return number;
}

const PAPER = record(
  {
    questions: listOf(
      record(
        {
          id: identifier,
          instructions: text(2000),
          matrix: listOf(listOf(probability, 2, MOST), 2, MOST),
        },
        { reports: listOf(text(200), 2, MOST) },
      ),
      1,
      100,
      "id",
    ),
  },
  { instructions: text(5000) },
);

/** Throws LdpkitError "study" where a study's paper mode does not fit its questions. */
export function read(study) {
  const { questions } = PAPER(study.paper, "paper");
  check(!study.sample_one_question, "paper");
  for (const [index, { id, matrix, reports }] of questions.entries()) {
    const path = `paper.questions[${index}]`;
    const { choices, refusal, mechanism, path: of } = study.questions.find((asked) => asked.id === id) ?? {};
    check(!refusal, `${of}.refusal`);
    // A memoized mechanism alone is `of` another; dice keep no first answer.
    check(Array.isArray(choices) && choices.length <= MOST && !mechanism.of, `${path}.id`);
    check(matrix.length === choices.length, `${path}.matrix`);
    for (const [place, row] of matrix.entries()) {
      const [sum, unit] = row.reduce(add);
      check(row.length === (reports ?? choices).length && sum === unit, `${path}.matrix[${place}]`);
    }
    const isOther = ([a, b], place) => a * matrix[0][place][1] !== b * matrix[0][place][0];
    check(matrix.some((row) => row.some(isOther)), `${path}.matrix`);
  }
}
