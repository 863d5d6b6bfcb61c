"""The sentences of a language, numbers in them, and foreign texts made safe to print.

English is in en.json, {key: sentence}. The participant's page translates the sentences that describe studies.
Sentences of errors, whose keys begin with "core.", are in English alone. A sentence names its facts as
`str.format` does, {so}. A sentence that depends on a number is {"one": …, "other": …}, with a form for each
plural category of the language in the CLDR. That number is the fact {count}.
"""

import json
import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import floor, log10
from typing import Any

Sentence = str | dict[str, str]

# The default number of digits for privacy parameters.
DIGITS = 12
# Characters that print as empty space; no other blank is printable.
BLANKS = " \u2800\u115f\u1160\u3164\uffa0"


class Words:
    """The sentences of one language: English, or another in a subclass.

    Attributes:
        language: its tag.
    """

    language = "en"

    @cached_property
    def _sentences(self) -> dict[str, Sentence]:
        """The English sentences, read when the first one is needed."""
        with open(os.path.join(os.path.dirname(__file__), "en.json"), encoding="utf-8") as file:
            sentences: dict[str, Sentence] = json.load(file)
        return sentences

    def say(self, which: str, **facts: Any) -> str:
        """Return the sentence with its facts. Raises KeyError for an unknown key or a missing fact."""
        return self.say_of(which, facts)

    def say_of(self, key: str, facts: Mapping[str, Any]) -> str:
        """Return the sentence with facts from a mapping, which is asked only for facts in the sentence."""
        return self.sentence(key, facts).format_map(facts)

    def sentence(self, key: str, facts: Mapping[str, Any]) -> str:
        """Return the sentence without its facts, in the form for the fact `count` if it has several."""
        found = self._sentences[key]
        return found if isinstance(found, str) else self.form(found, facts["count"])

    def form(self, forms: dict[str, str], count: int) -> str:
        """Return the form of a sentence for this number."""
        return forms["one" if count == 1 else "other"]

    def number(self, text: str) -> str:
        """Return a number as the language writes it."""
        return text

    def percent(self, text: str) -> str:
        """Return a percentage as the language writes it."""
        return f"{text} %"

    def sentences(self, prefix: str = "") -> dict[str, Sentence]:
        """Return all sentences whose keys begin with `prefix`."""
        return {key: self._sentences[key] for key in self._sentences if key.startswith(prefix)}


ENGLISH = Words()


def say(which: str, **facts: Any) -> str:
    """Return the sentence of this key, with its facts, in the language of this device: English."""
    return ENGLISH.say(which, **facts)


def rounded_up(value: float, digits: int = DIGITS) -> str:
    """Return a number with `digits` significant digits, never below its value: for bounds such as ε and δ."""
    text = f"{value:.{digits}g}"
    if float(text) >= value:
        return text
    step = 10.0 ** (floor(log10(value)) - digits + 1)
    return f"{value + step / 2:.{digits}g}"


def plain(number: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits and no exponent: 20,000, 0.0123."""
    return f"{float(f'{number:.{digits}g}'):,.12f}".rstrip("0").rstrip(".")


def counted(number: int, thing: str) -> str:
    """Return the number and the thing, in the plural unless there is one: "1 report", "0 reports"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def visible(text: str) -> str:
    """Return foreign text (a study's, a server's, a file's) as a terminal may print it, on one line.

    Control characters, line breaks and characters that change the direction of writing are shown as their
    escapes. None may move the cursor, colour our text, or pass for a line of ours. Several blanks in a row
    are shown as one, as blanks could fill a terminal's line.
    """
    shown = ""
    for one in text:
        if one not in BLANKS:
            shown += one if one.isprintable() else one.encode("unicode_escape").decode()
        elif shown[-1:] not in BLANKS or not shown:
            shown += one
    return shown


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like a misspelt `name`; None if none is similar."""
    from difflib import get_close_matches

    found = get_close_matches(name, list(known), 1)
    return found[0] if found else None
