"""The sentences of a language, numbers in them, and foreign texts made safe to print.

English is in JSON files, {key: sentence}. In this folder, en.core.json has the sentences of the device core,
whose keys begin with "core."; it is small enough for boards. en.json has the sentences that describe studies,
which the participant's page translates. A sentence names its facts as `str.format` does, {so}.
A sentence that depends on a number is {"one": …, "other": …}, with a form for each plural category of the
language in the CLDR. That number is the fact {count}.

Runs on MicroPython. A board without these files shows the keys themselves, such as "core.number".
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Optional, Union

    Sentence = Union[str, dict[str, str]]

FOLDER = __file__.replace("\\", "/").rpartition("/")[0]
CORE = "core."
# Other files than en.json, by the prefix of their sentences' keys.
APART = {CORE: FOLDER + "/en.core.json"}
# The default number of digits for privacy parameters.
DIGITS = 12
# Characters that print as empty space; no other blank is printable.
BLANKS = " \u2800\u115f\u1160\u3164\uffa0"


class Words:
    """The sentences of one language. A file is read when its first sentence is needed.

    Args:
        language: its tag, such as "en": how the names of its files begin.
        folder: the folder of these files.
        apart: the files that are elsewhere, by the prefix of their sentences' keys.
    """

    def __init__(
        self, language: str, folder: str = FOLDER, apart: "Optional[Mapping[str, str]]" = None
    ) -> None:
        self.language = language
        self._paths = {"": folder + "/" + language + ".json"}
        self._paths.update(apart or {})
        self._files: "dict[str, dict[str, Sentence]]" = {}

    def say(self, which: str, **facts: "Any") -> str:
        """Return the sentence with its facts. Raises KeyError for an unknown key or a missing fact."""
        return self.sentence(which, facts).format(**facts)

    def say_of(self, key: str, facts: "Mapping[str, Any]") -> str:
        """Return the sentence with facts from a mapping, which is asked only for facts in the sentence."""
        return self.sentence(key, facts).format_map(facts)

    def sentence(self, key: str, facts: "Mapping[str, Any]") -> str:
        """Return the sentence without its facts, in the form for the fact `count` if it has several."""
        found = self._file(key)[key]
        return found if isinstance(found, str) else self.form(found, facts["count"])

    def form(self, forms: "dict[str, str]", count: int) -> str:
        """Return the form of a sentence for this number."""
        return forms["one" if count == 1 else "other"]

    def number(self, text: str) -> str:
        """Return a number as the language writes it."""
        return text

    def percent(self, text: str) -> str:
        """Return a percentage as the language writes it."""
        return f"{text} %"

    def sentences(self, prefix: str = "") -> "dict[str, Sentence]":
        """Return all sentences whose keys begin with `prefix`."""
        starts = [key for key in self._paths if key.startswith(prefix) or prefix.startswith(key)]
        files = [self._file(key) for key in starts]
        return {key: file[key] for file in files for key in file if key.startswith(prefix)}

    def _file(self, key: str) -> "dict[str, Sentence]":
        """Return the sentences of the file that has this key."""
        longest = ""
        # A board's dictionaries keep no order, and all keys begin with "".
        for start in self._paths:
            if key.startswith(start) and len(start) > len(longest):
                longest = start
        path = self._paths[longest]
        if path not in self._files:
            # json imports regular expressions: half the start-up time of a device's program.
            import json

            with open(path, encoding="utf-8") as file:
                self._files[path] = json.load(file)
        return self._files[path]


ENGLISH = Words("en", apart=APART)


def say(which: str, **facts: "Any") -> str:
    """Return the sentence of this key, with its facts, in the language of this device: English."""
    try:
        return ENGLISH.say(which, **facts)
    except OSError:
        # A board without the files, or no file handle left: return key and facts, not another error.
        return " ".join([which] + [f"{name}={facts[name]}" for name in facts])


def rounded_up(value: float, digits: int = DIGITS) -> str:
    """Return a number with `digits` significant digits, never below its value: for bounds such as ε and δ."""
    from math import floor, log10

    text = f"{value:.{digits}g}"
    if float(text) >= value:
        return text
    step = 10.0 ** (floor(log10(value)) - digits + 1)
    return f"{value + step / 2:.{digits}g}"


def plain(number: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits and no exponent: 20,000, 0.0123."""
    # Not nested, because MicroPython cannot parse that.
    rounded = float(f"{number:.{digits}g}")
    return f"{rounded:,.12f}".rstrip("0").rstrip(".")


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


def nearest(name: str, known: "Iterable[str]", alike: float = 0.6) -> "Optional[str]":
    """Return the known name most like a misspelt `name`; None if no similarity reaches `alike`."""
    from difflib import get_close_matches

    found = get_close_matches(name, list(known), 1, alike)
    return found[0] if found else None
