/** Sections of a study, which people are shown together. ldp_client/documents/sections.py is its twin. */

import { check, identifier, listOf, oneOf, record, text } from "./shapes.js";

const MOST = 100;
const SECTION = record({ title: text(200), questions: listOf(identifier, 1, MOST) }, { any_of: oneOf(true, false) });
const SECTIONS = listOf(SECTION, 1, MOST, "title");

/** Reads a study's sections, of which each question stands in one. Throws LdpkitError "study". */
export function read(study) {
  study.sections = SECTIONS(study.sections, "sections");
  check(!study.sample_one_question, "sections");
  const left = new Map(study.questions.map((asked) => [asked.id, asked]));
  study.sections.forEach(({ questions, any_of: isList }, index) =>
    questions.forEach((id, place) => {
      const asked = left.get(id);
      // What is asked again and again keeps a noisy answer `of` a mechanism.
      check(
        left.delete(id) && (!isList || (asked.ask === "yes_no" && !asked.refusal && !asked.mechanism.of)),
        `sections[${index}].questions[${place}]`,
      );
    }),
  );
  check(!left.size, "sections");
}
