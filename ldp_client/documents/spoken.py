"""Texts of a study in several languages, each text {"en": …, "de": …}, all under one digest.

The study's `languages` lists them, its own language first. Devices use the plain document in that
language: they answer, count and send its labels, in whatever language the participant reads the study.
"""

from typing import Any

from ldp_client.documents.fields import Error, Matching, Text
from ldp_client.documents.shapes import ListOf

MOST = 50
FIELD = "languages"
# The tag of a language (BCP 47): "de", "pt-BR", "zh-Hant".
TAG = Matching("[a-z]{2,3}(-[A-Za-z0-9]{1,8})*", 'must be the tag of a language, such as "de" or "pt-BR"', 35)
LANGUAGES = ListOf(TAG, 1, MOST)


class Spoken(Text):
    """A text, or a text in each of the study's languages, from which `plain` selects."""

    def read(self, value: Any, path: str, error: Error) -> str:
        if isinstance(value, dict):
            raise error(path, f"must be a string: texts in several languages need the study's {FIELD!r}")
        return super().read(value, path, error)

    def json_schema(self) -> dict[str, Any]:
        text = super().json_schema()
        texts = {
            "type": "object",
            "propertyNames": TAG.json_schema(),
            "additionalProperties": text,
            "minProperties": 1,
        }
        return {"oneOf": [text, texts]}


def languages_of(document: Any, error: Error) -> tuple[str, ...]:
    """Read the languages that a document states, its own first; empty if it states none."""
    if not isinstance(document, dict) or FIELD not in document:
        return ()
    found: tuple[str, ...] = LANGUAGES.read(document[FIELD], FIELD, error)
    return found


def plain(document: dict[str, Any], language: str, error: Error) -> dict[str, Any]:
    """Return the document with each text in one language.

    Args:
        document: a study's document that states `languages`.
        language: a language of the study.
        error: the error to raise for a text that lacks a language of the study, or has another.

    Returns:
        A document of plain texts.
    """
    languages: list[str] = list(document[FIELD])
    found: dict[str, Any] = _part(
        {key: document[key] for key in document if key != FIELD}, language, languages, "", error
    )
    return found


def _part(part: Any, language: str, languages: list[str], path: str, error: Error) -> Any:
    if isinstance(part, list):
        return [_part(one, language, languages, f"{path}[{index}]", error) for index, one in enumerate(part)]
    if not isinstance(part, dict):
        return part
    found = {}
    for key in part:
        where = f"{path}.{key}" if path else key
        read = READERS.get(key)
        found[key] = read(part[key], language, languages, where, error) if read else part[key]
    return found


def _texts(values: Any, language: str, languages: list[str], path: str, error: Error) -> Any:
    if not isinstance(values, list):
        return values
    found = [_text(one, language, languages, f"{path}[{index}]", error) for index, one in enumerate(values)]
    own = [one[languages[0]] if isinstance(one, dict) else one for one in values]
    known = {label for label in own if isinstance(label, str)}
    for index, label in enumerate(found):
        if isinstance(label, str) and label in known and own[index] != label:
            raise error(
                f"{path}[{index}]",
                f"is in {language} the same text as choices[{own.index(label)}] in {languages[0]}: "
                "answers could be mistaken for the other choice. Reword a label",
            )
    return found


def _text(value: Any, language: str, languages: list[str], path: str, error: Error) -> Any:
    if not isinstance(value, dict):
        return value
    known = sorted(languages)
    if sorted([str(tag) for tag in value]) != known:
        raise error(
            path, f"must have a text in each of the study's languages, and in no other: {', '.join(known)}"
        )
    return value[language]


# How to read each member of a document: a text, a list of texts, or a part that contains texts.
READERS = {
    **dict.fromkeys(("title", "purpose", "owner", "ethics", "consent", "text", "unit"), _text),
    "choices": _texts,
    **dict.fromkeys(("questions", "features", "response", "public", "sections"), _part),
}
