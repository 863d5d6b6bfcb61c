/**
 * A study's document with each text in one of its `languages`, as people are shown it, and without `languages`; answers to it are
 * given in its own labels. document: what JSON.parse gave, or `study.document`. Throws LdpkitError "study" where a text lacks a language.
 */
export function plain(document: object, language: string): object;
