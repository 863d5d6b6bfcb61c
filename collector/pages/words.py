"""The languages of the participant's page: choosing one, its sentences, numbers and plurals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

from babel import Locale, UnknownLocaleError
from babel.numbers import format_decimal, format_percent
from werkzeug.datastructures import LanguageAccept

from ldp_client.documents.rational import Rational
from ldp_client.words.text import APART, CORE, Words

if TYPE_CHECKING:
    from ldp_client.words.text import Sentence

# In the order of the page's menu. Each has a catalogue in FOLDER; the English one leaves out the device's
# sentences.
LANGUAGES = ("en", "de", "fr", "es", "pt", "it", "nl", "pl", "tr", "ar", "hi", "zh")
FOLDER = Path(__file__).parents[1] / "words"
_PAGE = str(FOLDER / "en.json")
ENGLISH = Words("en", apart={**APART, "page.": _PAGE, "script.": _PAGE, "hundred.": _PAGE})
# A number as Python writes it, perhaps with marks between thousands.
NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?")


class LocalWords(Words):
    """The sentences of a language, with plural forms and numbers by its rules in the CLDR.

    Args:
        language: a tag in LANGUAGES.
    """

    def __init__(self, language: str) -> None:
        super().__init__(language, str(FOLDER))
        self._locale = Locale.parse(language)
        self._formatter = _LocalFormatter(self)

    def say(self, which: str, **facts: Any) -> str:
        """Return the sentence with its facts."""
        return self.say_of(which, facts)

    def say_of(self, key: str, facts: Mapping[str, Any]) -> str:
        """Return the sentence with facts from a mapping."""
        return self._formatter.vformat(self.sentence(key, facts), (), facts)

    def sentences(self, prefix: str = "") -> dict[str, Sentence]:
        """Return all sentences whose keys begin with the prefix; missing ones are in English."""
        return {**ENGLISH.sentences(prefix), **super().sentences(prefix)}

    def sentence(self, key: str, facts: Mapping[str, Any]) -> str:
        """Return the sentence in the form for its facts; in English if the language lacks it."""
        return super().sentence(key, facts) if key in self._file(key) else ENGLISH.sentence(key, facts)

    def _file(self, key: str) -> dict[str, Sentence]:
        """Return the language's only file. It has no sentences of the device core."""
        return {} if key.startswith(CORE) else super()._file(key)

    def form(self, forms: dict[str, str], count: int) -> str:
        """Choose the sentence for this number."""
        return forms[self._locale.plural_form(count)]

    def number(self, text: str) -> str:
        """Write a number in the language's form; other texts, such as 1e+44, stay unchanged."""
        if not NUMBER.fullmatch(text):
            return text
        return format_decimal(*self._read(text), self._locale, group_separator="," in text)

    def percent(self, text: str) -> str:
        """Write a percentage."""
        number, pattern = self._read(text)
        percents = str(self._locale.percent_formats[None].pattern)
        return format_percent(
            number / 100, pattern.join(re.split("[#,0]+", percents, maxsplit=1)), self._locale
        )

    def _read(self, text: str) -> tuple[Decimal, str]:
        """Return the number, and the language's pattern with all of its digits."""
        digits = text.replace(",", "")
        whole = str(self._locale.decimal_formats[None].pattern).partition(".")[0]
        places = len(digits.partition(".")[2])
        return Decimal(digits), whole + ("." + places * "0" if places else "")


class _LocalFormatter(Formatter):
    """A `str.format` that writes numbers in the language's form."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def format_field(self, value: Any, format_spec: str) -> str:
        text = super().format_field(value, format_spec)
        return self._words.number(text) if isinstance(value, (int, float, Rational)) else text


@cache
def words_of(language: str) -> Words:
    """Return the sentences of a language; each process has one set for each language.

    Args:
        language: a tag. A tag without a catalogue is shortened to its first part, else replaced by English.

    Returns:
        The sentences.
    """
    first = language.partition("-")[0]
    return LocalWords(first) if first in LANGUAGES[1:] else ENGLISH


@cache
def is_leftward(language: str) -> bool:
    """Return True if a language is written from right to left."""
    return bool(Locale.parse(language).text_direction == "rtl")


@cache
def own_name(language: str) -> str:
    """Return a language's name for itself, or the tag itself if it is unknown."""
    try:
        locale = Locale.parse(language, sep="-")
    except (UnknownLocaleError, ValueError):
        return language
    found = locale.get_display_name(locale)
    return found[:1].upper() + found[1:] if found else language


def chosen(asked: str | None, accepted: LanguageAccept, offered: Iterable[str], own: str) -> str:
    """Choose the language of a page.

    Args:
        asked: the language in the address, if any.
        accepted: the languages that the browser accepts.
        offered: the available tags.
        own: the study's own language.

    Returns:
        An offered tag: the address's, else the best that the browser accepts, else the study's.
    """
    known = {tag.lower(): tag for tag in offered}
    wanted = [tag.lower() for tag, quality in accepted if quality]
    # A reader of Austrian German also reads German.
    parts = [part for one in wanted for part in (one, one.partition("-")[0])]
    for tag in [(asked or "").lower(), *parts]:
        if tag in known:
            return known[tag]
    return own
