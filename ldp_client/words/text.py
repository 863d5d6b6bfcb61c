"""The sentences of a language, numbers in them, and what others wrote, made harmless.

English is JSON files, {key: sentence}. In this folder en.core.json has what the device core says, its keys
beginning with "core.", small enough for boards, and en.json what the device library says; what commands and
files say is beside the commands. What the participant's page alone says, and other languages, are the
collector's. A sentence names its facts as `str.format` does, {so};
one that depends on a number is {"one": …, "other": …}, a form for each plural category that the language has
in the CLDR, and that number is the fact {count}. Keys that begin with "page." and "script." are the page's
alone, with plain {names}.

Runs on MicroPython. A board without these files says the keys themselves, such as "core.number".
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Optional, Union

    Sentence = Union[str, dict[str, str]]

FOLDER = __file__.replace("\\", "/").rpartition("/")[0]
CORE = "core."
# How the keys of what commands and files say begin, and of what only who makes and publishes studies is told.
OF_COMMANDS = (
    "cli.",
    "files.",
    "set.",
    "study.warning",
    "study.note",
    "study.anew",
    "study.repeats",
    "study.unstated",
    "channel.warning",
    "paper.warning",
)
# Which files beside en.json have the sentences whose keys begin so.
APART = {CORE: FOLDER + "/en.core.json"}
for _start in OF_COMMANDS:
    APART[_start] = FOLDER + "/../commands/en.json"
# The digits that privacy is shown with where nothing else is said.
DIGITS = 12
# What prints as nothing and takes up room; all other blanks are not printable.
BLANKS = " \u2800\u115f\u1160\u3164\uffa0"


class Words:
    """The sentences of one language, each file of it read when the first of its sentences is said.

    Args:
        language: its tag, such as "en": how the names of its files begin.
        folder: where they are.
        apart: the files that are elsewhere, by how the keys of their sentences begin.
    """

    def __init__(
        self, language: str, folder: str = FOLDER, apart: "Optional[Mapping[str, str]]" = None
    ) -> None:
        self.language = language
        self._paths = {"": folder + "/" + language + ".json"}
        self._paths.update(apart or {})
        self._files: "dict[str, dict[str, Sentence]]" = {}

    def say(self, which: str, **facts: "Any") -> str:
        """The sentence with its facts. Raises KeyError for an unknown key, or a fact that is missing."""
        return self.sentence(which, facts).format(**facts)

    def say_of(self, key: str, facts: "Mapping[str, Any]") -> str:
        """The same with facts from a mapping, which is asked for those only that the sentence names."""
        return self.sentence(key, facts).format_map(facts)

    def sentence(self, key: str, facts: "Mapping[str, Any]") -> str:
        """The sentence without its facts, in the form for the fact `count` where it has several."""
        found = self._file(key)[key]
        return found if isinstance(found, str) else self.form(found, facts["count"])

    def form(self, forms: "dict[str, str]", count: int) -> str:
        """The form of a sentence for this number."""
        return forms["one" if count == 1 else "other"]

    def number(self, text: str) -> str:
        """A number as the language writes it."""
        return text

    def percent(self, text: str) -> str:
        """So many hundredths as the language writes them."""
        return f"{text} %"

    def sentences(self, prefix: str = "") -> "dict[str, Sentence]":
        """All sentences whose keys begin so."""
        starts = [key for key in self._paths if key.startswith(prefix) or prefix.startswith(key)]
        files = [self._file(key) for key in starts]
        return {key: file[key] for file in files for key in file if key.startswith(prefix)}

    def _file(self, key: str) -> "dict[str, Sentence]":
        """The sentences of the file that has this key."""
        longest = ""
        # A board's dictionaries keep no order, and all keys begin with "".
        for start in self._paths:
            if key.startswith(start) and len(start) > len(longest):
                longest = start
        path = self._paths[longest]
        if path not in self._files:
            # With it come regular expressions: half the time that a device's program takes to start.
            import json

            with open(path, encoding="utf-8") as file:
                self._files[path] = json.load(file)
        return self._files[path]


ENGLISH = Words("en", apart=APART)


def say(which: str, **facts: "Any") -> str:
    """The sentence of this key, with its facts, in the language of this device: English."""
    try:
        return ENGLISH.say(which, **facts)
    except OSError:
        # A board without the files, or no handle left: a key and its facts are better than another error.
        return " ".join([which] + [f"{name}={facts[name]}" for name in facts])


def rounded_up(value: float, digits: int = DIGITS) -> str:
    """A number with so many significant digits, never less than it is: for what holds at most, as ε and δ."""
    from math import floor, log10

    text = f"{value:.{digits}g}"
    if float(text) >= value:
        return text
    step = 10.0 ** (floor(log10(value)) - digits + 1)
    return f"{value + step / 2:.{digits}g}"


def plain(number: float, digits: int = 3) -> str:
    """So many digits that count, and no exponent: 20,000, 0.0123."""
    # Not one inside the other, which MicroPython cannot read.
    rounded = float(f"{number:.{digits}g}")
    return f"{rounded:,.12f}".rstrip("0").rstrip(".")


def counted(number: int, thing: str) -> str:
    """The number and the thing, in the plural unless there is one: "1 report", "0 reports"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def visible(text: str) -> str:
    """Foreign text (a study's, a server's, a file's) as a terminal may print it, on one line.

    Control characters, line breaks and those that change the direction of writing are shown as their escapes:
    none may move the cursor, colour what we say, or pass for a line of ours. Nor may blanks that fill
    a terminal's line: several in a row are shown as one.
    """
    shown = ""
    for one in text:
        if one not in BLANKS:
            shown += one if one.isprintable() else one.encode("unicode_escape").decode()
        elif shown[-1:] not in BLANKS or not shown:
            shown += one
    return shown


def letters(text: str) -> str:
    """What of a text counts when people compare it: no case, blanks or signs; all where that is nothing."""
    # Boards have no such module, and do not compare.
    from unicodedata import normalize

    return "".join([one for one in normalize("NFKC", text).casefold() if one.isalnum()]) or text


def nearest(name: str, known: "Iterable[str]", alike: float = 0.6) -> "Optional[str]":
    """The one of these names that somebody who wrote this one may have meant, if any is so much alike."""
    from difflib import get_close_matches

    found = get_close_matches(name, list(known), 1, alike)
    return found[0] if found else None
