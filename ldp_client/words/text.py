"""The sentences of a language, numbers in them, and what others wrote, made harmless.

A language is a JSON file in this folder, {key: sentence}. A sentence names its facts as Python's `str.format`
does, {so}; one that depends on a number is {"one": …, "other": …}, and the number is the fact {count}. Keys
that begin with "page." and "script." are the participant's page's, whose facts are plain {names}.
"""

import json
import os
from math import floor, log10

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Optional, Union

    Sentence = Union[str, dict[str, str]]

FOLDER = os.path.dirname(os.path.abspath(__file__))
# The digits that privacy is shown with where nothing else is said.
DIGITS = 12


class Words:
    """The sentences of one language, read from its file when the first is said.

    Args:
        language: its tag, such as "en": the name of its file in this folder.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._sentences: "Optional[dict[str, Sentence]]" = None

    def say(self, key: str, /, **facts: "Any") -> str:
        """The sentence with its facts. Raises KeyError for an unknown key, or a fact that is missing."""
        return self.say_of(key, facts)

    def say_of(self, key: str, facts: "Mapping[str, Any]") -> str:
        """The same with facts from a mapping, which is asked for those only that the sentence names."""
        return self.sentence(key, facts).format_map(facts)

    def sentence(self, key: str, facts: "Mapping[str, Any]") -> str:
        """The sentence without its facts, in the form for the fact `count` where it has two."""
        found = self.sentences()[key]
        if isinstance(found, str):
            return found
        return found["one" if facts["count"] == 1 else "other"]

    def sentences(self, prefix: str = "") -> "dict[str, Sentence]":
        """All sentences whose keys begin so."""
        if self._sentences is None:
            with open(os.path.join(FOLDER, f"{self.language}.json"), encoding="utf-8") as file:
                self._sentences = json.load(file)
        return {key: said for key, said in self._sentences.items() if key.startswith(prefix)}


ENGLISH = Words("en")


def rounded_up(value: float, digits: int = DIGITS) -> str:
    """A number with so many significant digits, never less than it is: for what holds at most, as ε and δ."""
    text = f"{value:.{digits}g}"
    if float(text) >= value:
        return text
    step = 10.0 ** (floor(log10(value)) - digits + 1)
    return f"{value + step / 2:.{digits}g}"


def counted(number: int, thing: str) -> str:
    """The number and the thing, in the plural unless there is one: "1 report", "0 reports"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def visible(text: str) -> str:
    """Foreign text (a study's, a server's, a file's) as a terminal may print it, on one line.

    Control characters, line breaks and those that change the direction of writing are shown as their escapes:
    none may move the cursor, colour what we say, or pass for a line of ours.
    """
    return "".join([one if one.isprintable() else one.encode("unicode_escape").decode() for one in text])
