/** Sections of a study, which people are shown together. ldp_client/documents/sections.py is its twin. */

import { check, identifier, listOf, record, text } from "./shapes.js";

const MOST = 100;
const SECTIONS = listOf(record({ title: text(200), questions: listOf(identifier, 1, MOST) }), 1, MOST, "title");

/** Reads a study's sections, of which each question stands in one. Throws LdpkitError "study". */
export function read(study) {
  study.sections = SECTIONS(study.sections, "sections");
  check(!study.ask_one, "sections");
  const left = new Set(study.questions.map(({ id }) => id));
  study.sections.forEach(({ questions }, index) =>
    questions.forEach((id, place) => check(left.delete(id), `sections[${index}].questions[${place}]`)),
  );
  check(!left.size, "sections");
}
