/** A study's parsed document in one of its `languages`, for people to read; answers have its own labels. */
export function plain(document: object, language: string): object;
