/** Texts of a study in several languages. ldp_client/documents/spoken.py is its twin. */

import { check, isObject, listOf, matching } from "./shapes.js";

const TEXTS = /^(title|purpose|owner|ethics|consent|text|unit)$/;
const PARTS = /^(questions|features|response|public|sections)$/;

const TAGS = listOf(matching(/^(?!.{36})[a-z]{2,3}(-[A-Za-z\d]{1,8})*$/), 1, 50);

/** The plain document of each language, its own first. */
export const each = (document) =>
  TAGS(document.languages, "languages").map((language) => plain(document, language));

/** A study's document with each text in one language, and without `languages`. */
export function plain({ languages, ...document }, language) {
  const known = `${[...languages].sort()}`;
  function text(value, path) {
    if (!isObject(value)) return value;
    check(`${Object.keys(value).sort()}` === known, path);
    return value[language];
  }
  function labels(value, path) {
    const own = value.map((one) => (isObject(one) ? one[languages[0]] : one));
    const known = new Set(own);
    return value.map((one, index) => {
      const label = text(one, `${path}[${index}]`);
      // An answer in the wrong language would be taken for another choice.
      check(label === own[index] || !known.has(label), `${path}[${index}]`);
      return label;
    });
  }
  function part(value, path) {
    if (Array.isArray(value)) return value.map((one, index) => part(one, `${path}[${index}]`));
    if (!isObject(value)) return value;
    const pairs = Object.entries(value).map(([key, one]) => [key, field(key, one, path && `${path}.`)]);
    return Object.fromEntries(pairs);
  }
  function field(key, value, prefix) {
    const path = prefix + key;
    if (TEXTS.test(key)) return text(value, path);
    if (key === "choices" && Array.isArray(value)) return labels(value, path);
    return PARTS.test(key) ? part(value, path) : value;
  }
  // Its keys stand for labels of the study's own language.
  if (language !== languages[0]) delete document.channel;
  return part(document, "");
}
