/** A study in the language of its page: what a person reads, and the answers as the study itself has them. */

import { parseStudy } from "../../../js/index.js";
import { plain } from "../../../js/languages.js";

/** The study with its texts in that language, to show and to read answers with: only the study is answered. */
export async function shownIn(study, language) {
  const { languages } = study.document;
  if (!languages) return study;
  const document = plain(study.document, languages.includes(language) ? language : languages[0]);
  return parseStudy(JSON.stringify(document));
}

/** {id: answer} in the study's own labels: each choice by its place. */
export function inOwnLabels(answers, shown, study) {
  return eachField(answers, [...shown.questions, ...(shown.public ?? [])], [...study.questions, ...(study.public ?? [])]);
}

function eachField(answers, shown, own) {
  const given = Object.entries(answers).map(([id, answer]) => {
    const place = own.findIndex((field) => field.id === id);
    return [id, ownLabel(answer, shown[place], own[place])];
  });
  return Object.fromEntries(given);
}

function ownLabel(answer, shown, own) {
  if (own.features) return eachField(answer, [...shown.features, shown.response], [...own.features, own.response]);
  return Array.isArray(own.choices) ? own.choices[shown.choices.indexOf(answer)] : answer;
}

/** A value that stands in clear, in the page's language; as it is sent behind, where that differs. */
export function shownValue(value, shown, own) {
  const label = own.choices ? shown.choices[own.choices.indexOf(value)] : value;
  return label === value ? value : `${label} (${value})`;
}
