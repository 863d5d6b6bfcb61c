/** What some studies state: who asks, the open days, sections, that each device gets one question. */

import { fail } from "./errors.js";
import { uniformBelow } from "./randomness.js";
import { isBelow } from "./rational.js";
import { check, identifier, isText, listOf, matching, oneOf, plain, record, text, whole } from "./shapes.js";

const CONTACT = /^(?!.{201})(https:\/\/[A-Za-z\d][-\w.+~:/?#[\]!$&'()*,;=%]*|[-\w.+]+@[-\w+]+(\.[-\w+]+)+)$/;

const day = plain((value) => {
  const midnight = `${value}T00:00:00.000Z`;
  // No date of what is not a day: toJSON gives null.
  return isText(value) && value > "0001" && new Date(midnight).toJSON() === midnight;
});

/** One line: nothing that breaks it, nor turns the direction of what follows. */
const line = (longest) => (value, path) => {
  check(!/[\p{Cc}\u2028-\u202e\u2066-\u2069]/u.test(text(longest)(value, path)), path);
  return value;
};

const ids = listOf(identifier, 1, 100);
const section = record({ title: text(200), questions: ids }, { any_of: oneOf(true, false) });
const SHAPES = {
  sample_one_question: oneOf(true, false),
  opens: day,
  closes: day,
  owner: line(200),
  contact: matching(CONTACT),
  ethics: line(1000),
  consent: text(2000),
  retention: record({ days: whole(1, 36500) }),
  sections: listOf(section, 1, 100, "title"),
};

/** Reads these parts of a study, and gives it `refuseToday`, and `one` if it asks one question. */
export function read(study) {
  for (const key in SHAPES) if (key in study) study[key] = SHAPES[key](study[key], key);
  check(!(study.opens > study.closes), "closes");
  study.refuseToday = () => refuseOutside(study);
  if (study.sections) checkSections(study);
  // What its device, cost and reports do otherwise.
  if (study.sample_one_question) study.one = { place, draw, dearer, paid, pick };
}

/** By the person's day. West of the study's author the first one comes later; a device that is early does no harm. */
function refuseOutside({ opens, closes }) {
  const here = Date.now() - 6e4 * new Date().getTimezoneOffset();
  const day = (shift) => new Date(here + shift * 864e5).toISOString().slice(0, 10);
  // A comparison with an end that the study does not have is false.
  if (day(1) < opens) fail("closed", `opens on ${opens}`);
  if (day(0) > closes) fail("closed", `closed on ${closes}`);
}

/** Each question stands in one section. */
function checkSections({ questions, sections, sample_one_question: isOne }) {
  check(!isOne, "sections");
  const left = new Map(questions.map((asked) => [asked.id, asked]));
  for (const [index, { questions: ids, any_of: isList }] of sections.entries()) {
    for (const [place, id] of ids.entries()) {
      const asked = left.get(id);
      // What is asked again and again keeps a noisy answer `of` a mechanism.
      const isBox = asked?.ask === "yes_no" && !asked.refusal && !asked.mechanism.of;
      check(left.delete(id) && (!isList || isBox), `sections[${index}].questions[${place}]`);
    }
  }
  check(!left.size, "sections");
}

/** The place of the question that was drawn for this very document; -1 for none. */
function place({ digest, questions }, { drawn }) {
  const row = drawn.find((row) => row.digest === digest);
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
const dearer = (cost, other) => (isBelow(cost, other) ? other : cost);

/** What is paid for with a question: all of which one is drawn, but each version may draw another memoized one. */
function paid(recalled, item) {
  // A memoized mechanism alone is `of` another.
  const once = recalled.filter(({ asked }) => !asked.mechanism.of);
  return once.includes(item) ? once : [item];
}

/** Return [the question that is sent], of [id, draw, size] each, and spaces that hide which it is. */
function pick(ready, place, random) {
  const drawn = ready[place < 0 ? uniformBelow(ready.length, random) : place];
  return [[drawn], Math.max(...ready.map(([, , size]) => size)) - drawn[2]];
}
