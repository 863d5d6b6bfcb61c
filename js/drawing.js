/** Studies that ask each device one of their questions, drawn whatever the answers are. */

import { uniformBelow } from "./randomness.js";
import { isBelow } from "./rational.js";
import { check } from "./shapes.js";

/**
 * Gives a study that asks one question `one`: what its device, its cost and its reports do otherwise. Throws
 * LdpkitError "study".
 */
export function read(study) {
  const { sample_one_question } = study;
  check(sample_one_question === !!sample_one_question, "sample_one_question");
  if (sample_one_question) study.one = { place, draw, dearer, paid, pick };
}

/** The place of the question that was drawn for this very document; -1 for none. */
function place({ digest: its, questions }, { drawn }) {
  const row = drawn.find(({ digest }) => digest === its);
  return questions.findIndex(({ id }) => id === row?.question);
}

/** Draws that question, unless one is drawn, and has the ledger remember it: its place. */
function draw(study, memory, random) {
  const known = place(study, memory);
  if (known >= 0) return known;
  const { digest, questions } = study;
  const drawn = uniformBelow(questions.length, random);
  memory.drawn.push({ digest, question: questions[drawn].id });
  return drawn;
}

/** The larger of two costs: any question may be drawn. */
const dearer = (one, other) => (isBelow(one, other) ? other : one);

/** What is paid for with a question: all of which one is drawn, but each version may draw another memoized one. */
function paid(recalled, one) {
  // A memoized mechanism alone is `of` another.
  const once = recalled.filter(({ asked }) => !asked.mechanism.of);
  return once.includes(one) ? once : [one];
}

/**
 * [what is sent, spaces behind the report] of what is `ready` to be, [id, draw, size] for each question, where that
 * at `place` was drawn before, or one is drawn now: the spaces hide which.
 */
function pick(ready, place, random) {
  const drawn = ready[place < 0 ? uniformBelow(ready.length, random) : place];
  return [[drawn], Math.max(...ready.map(([, , size]) => size)) - drawn[2]];
}
