"""The languages of the participant's page: choosing one, its sentences, numbers and plural forms.

Templates, scripts and code have sentences in English. gettext catalogues have their translations.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from babel import Locale, UnknownLocaleError
from babel.dates import format_date
from babel.messages.catalog import Message
from babel.messages.pofile import read_po
from babel.numbers import format_decimal, format_percent
from werkzeug.datastructures import LanguageAccept

from ldp_client.documents.rational import Rational
from ldp_client.words.text import Words

# In the order of the page's menu. Each but English has a catalogue.
LANGUAGES = ("en", "de", "fr", "es", "pt", "it", "nl", "pl", "tr", "ar", "hi", "zh")
FOLDER = Path(__file__).parent / "locale"
# The plural categories of the CLDR, in the order of a message's forms in a catalogue.
CATEGORIES = ("zero", "one", "two", "few", "many", "other")
# A number as Python writes it, perhaps with marks between thousands.
NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?")


class Language(Words):
    """A language of the page: the device library's sentences and the page's own, translated.

    Args:
        tag: a tag in LANGUAGES.
    """

    def __init__(self, tag: str) -> None:
        self.language = tag
        self._locale = Locale.parse(tag)
        self.categories = plural_categories(self._locale)
        # By their English sentence; none for English.
        self._messages: dict[str, Message] = {}
        if tag != LANGUAGES[0]:
            with catalogue_path(tag).open("rb") as file:
                self._messages = {_english(message): message for message in read_po(file, tag) if message.id}
        self._formatter = _LocalFormatter(self)

    def gettext(self, english: str) -> str:
        """Translate a sentence; a missing translation stays English."""
        message = self._messages.get(english)
        return english if message is None else str(message.string)

    def ngettext(self, one: str, other: str, count: int) -> str:
        """Translate a sentence in the form for this number."""
        message = self._messages.get(one)
        if message is None:
            return one if count == 1 else other
        return self._forms(message)[self._locale.plural_form(count)]

    def sentence(self, key: str, facts: Mapping[str, Any]) -> str:
        """Translate a sentence of the device library, in the form for its facts."""
        english = self._sentences[key]
        if isinstance(english, str):
            return self.gettext(english)
        return self.ngettext(english["one"], english["other"], facts["count"])

    def say_of(self, key: str, facts: Mapping[str, Any]) -> str:
        """Return the sentence with facts from a mapping."""
        return self.filled(self.sentence(key, facts), facts)

    def filled(self, sentence: str, facts: Mapping[str, Any]) -> str:
        """Return a translated sentence with its facts."""
        return self._formatter.vformat(sentence, (), facts)

    def script_messages(self) -> dict[str, str | dict[str, str]]:
        """Return the translations for the page's scripts, by the English sentence; {} for English.

        A sentence with plural forms has them by category.
        """
        messages = self._messages.values()
        here = [message for message in messages if any(file.endswith(".js") for file, _ in message.locations)]
        return {
            _english(message): message.string if isinstance(message.string, str) else self._forms(message)
            for message in here
        }

    def _forms(self, message: Message) -> dict[str, str]:
        """Return a message's forms by plural category."""
        return dict(zip(self.categories, message.string or (), strict=True))

    def number(self, text: str) -> str:
        """Write a number in the language's form; other texts, such as 1e+44, stay unchanged."""
        if not NUMBER.fullmatch(text):
            return text
        return format_decimal(*self._read(text), self._locale, group_separator="," in text)

    def day(self, day: str) -> str:
        """Write a day, YYYY-MM-DD, in the language's form."""
        return str(format_date(date.fromisoformat(day), "long", self._locale))

    def percent(self, text: str) -> str:
        """Write a percentage, in English as the device library does."""
        if self.language == LANGUAGES[0]:
            return super().percent(text)
        number, pattern = self._read(text)
        percents = str(self._locale.percent_formats[None].pattern)
        return format_percent(
            number / 100, pattern.join(re.split("[#,0]+", percents, maxsplit=1)), self._locale
        )

    def _read(self, text: str) -> tuple[Decimal, str]:
        """Return the number, and the language's pattern with all of its digits."""
        digits = text.replace(",", "")
        whole = str(self._locale.decimal_formats[None].pattern).partition(".")[0]
        decimals = len(digits.partition(".")[2])
        return Decimal(digits), whole + ("." + decimals * "0" if decimals else "")


class _LocalFormatter(Formatter):
    """A `str.format` that writes numbers in the language's form."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def format_field(self, value: Any, format_spec: str) -> str:
        text = super().format_field(value, format_spec)
        return self._words.number(text) if isinstance(value, (int, float, Rational)) else text


def plural_categories(locale: Locale) -> list[str]:
    """Return the plural categories of a language, in the order of the forms in its catalogue."""
    return [name for name in CATEGORIES if name in {*locale.plural_form.tags, "other"}]


def catalogue_path(tag: str) -> Path:
    """Return the path of a language's catalogue."""
    return FOLDER / tag / "LC_MESSAGES" / "participant.po"


def _english(message: Message) -> str:
    return message.id if isinstance(message.id, str) else str(message.id[0])


@cache
def words_of(language: str) -> Language:
    """Return a language of the page; each process has one object for each.

    Args:
        language: a tag. A tag without a catalogue is shortened to its first part, else replaced by English.

    Returns:
        The language.
    """
    first = language.partition("-")[0]
    return Language(first if first in LANGUAGES else LANGUAGES[0])


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
    name = locale.get_display_name(locale)
    return name[:1].upper() + name[1:] if name else language


def chosen(asked: str | None, accepted: LanguageAccept, offered: Iterable[str], default: str) -> str:
    """Choose the language of a page.

    Args:
        asked: the language in the address, if any.
        accepted: the languages that the browser accepts.
        offered: the available tags.
        default: the tag for visitors who read none of these.

    Returns:
        An offered tag: the address's, else the best that the browser accepts, else the default.
    """
    known = {tag.lower(): tag for tag in offered}
    wanted = [tag.lower() for tag, quality in accepted if quality]
    # A reader of Austrian German also reads German.
    parts = [part for tag in wanted for part in (tag, tag.partition("-")[0])]
    for tag in [(asked or "").lower(), *parts]:
        if tag in known:
            return known[tag]
    return default
