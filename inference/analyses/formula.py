"""Formulas as in R and bambi: an outcome, fixed terms, and terms that vary by group."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ldp_client.documents.errors import InputError
from ldp_client.words.text import nearest

_POWER = re.compile(r"(?<![\w.)])([A-Za-z_][\w.]*)\s*(?:\^|\*\*)\s*\d")

_NUMBER = re.compile(r"[\d.]+")


@dataclass(frozen=True)
class Varying:
    """A varying term. group: the column. expression: what varies, such as "1" or "1 + age"."""

    group: str
    expression: str


@dataclass(frozen=True)
class Formula:
    """text: as written. outcome: the column on the left. fixed: the right side without varying terms."""

    text: str
    outcome: str
    fixed: str
    varying: tuple[Varying, ...] = ()


def parse(text: str, columns: Sequence[str]) -> Formula:
    """Parse a formula over these columns. Raises InputError, with a remedy, for an unreadable formula."""
    if not isinstance(text, str):
        raise InputError(f"the formula must be text, not a {type(text).__name__}", code="formula.not_text")
    sides = text.split("~")
    if len(sides) != 2 or not sides[0].strip() or not sides[1].strip():
        raise InputError(
            f'the formula {text!r} must read "outcome ~ terms", such as "ever ~ age + region"',
            code="formula.not_two_sides",
        )
    if "__" in sides[1]:
        raise InputError(
            "a formula cannot use double underscores in names: rename the column",
            code="formula.double_underscore",
        )
    outcome = sides[0].strip().strip("`").strip()
    known_column(outcome, columns, "the outcome must be one column; ")
    fixed, groups = _without_groups(sides[1], text)
    return Formula(text, outcome, _checked(fixed, text), tuple(_varying(one, columns) for one in groups))


def known_column(name: str, columns: Sequence[str], lead: str = "") -> str:
    """Return the name, if it is a column. Raises InputError that lists the columns."""
    if name in columns:
        return name
    near = nearest(name, columns)
    hint = f"; did you mean {near}?" if near else f": there are {', '.join(columns)}"
    raise InputError(f"{lead}there is no column {name!r}{hint}", code="table.unknown_column")


def _without_groups(right: str, text: str) -> tuple[str, list[str]]:
    """Return the right side without its (… | …), and the contents of these."""
    found, kept = [], ""
    for part in _outermost(right, text):
        if part.startswith("(") and "|" in part:
            found.append(part[1:-1])
            kept = _without_sign(kept, text)
        else:
            kept += part
    if "|" in kept:
        raise InputError(
            "write terms that vary by group in brackets, such as (1 | clinic)",
            code="formula.varying_without_brackets",
        )
    return kept.strip().removeprefix("+").strip() or "1", found


def _outermost(right: str, text: str) -> list[str]:
    """Split the text into outermost brackets, and the text between them."""
    parts, depth = [""], 0
    for sign in right:
        if sign == "(" and depth == 0:
            parts.append("")
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            raise InputError(
                f"the formula {text!r} closes a bracket that was not opened",
                code="formula.bracket_not_opened",
            )
        parts[-1] += sign
        if sign == ")" and depth == 0:
            parts.append("")
    if depth:
        raise InputError(
            f"the formula {text!r} opens a bracket that is not closed", code="formula.bracket_not_closed"
        )
    return parts


def _without_sign(kept: str, text: str) -> str:
    """Return the text before a bracket, without the plus that leads to it."""
    before = kept.rstrip()
    if before and not before.endswith("+"):
        raise InputError(
            f"in {text!r} write a + before each (… | …)",
            code="formula.varying_without_plus",
        )
    return before.removesuffix("+").rstrip()


def _varying(inside: str, columns: Sequence[str]) -> Varying:
    expression, _, group = inside.replace("||", "|").partition("|")
    if not expression.strip() or "|" in group:
        raise InputError(f"({inside}) must read (1 | group) or (x | group)", code="formula.bad_varying_term")
    name = group.strip().strip("`")
    known_column(name, columns, f"({inside}): the group must be one column; ")
    return Varying(name, _checked(expression.strip(), f"({inside})"))


def _checked(side: str, text: str) -> str:
    """Return the side. Raises InputError for a power that R's grammar would read as the column itself."""
    bare = _outside_calls(side)
    power = _POWER.search(bare)
    if power:
        raise InputError(
            f"in {text!r} a power of {power[1]} means {power[1]} itself, as in R: write I({power[1]}**2)",
            code="formula.bare_power",
        )
    return side


def _outside_calls(side: str) -> str:
    """Return the text without the contents of a call's brackets, of braces, or of backticks."""
    kept, calls = [], []
    for place, sign in enumerate(side):
        if sign in "({[":
            calls.append(sign != "(" or bool(re.match(r"[\w.`]", side[place - 1 : place])))
        if not any(calls):
            kept.append(sign)
        if sign in ")}]" and calls:
            calls.pop()
    return "".join(kept)


class Names:
    """Stand-ins for columns whose names are invalid in Python, such as `cov.age`, in formulas and frames."""

    def __init__(self, columns: Sequence[str]) -> None:
        odd = [name for name in columns if not name.isidentifier()]
        self.stand_ins: Mapping[str, str] = {name: f"column{place}z" for place, name in enumerate(odd)}
        longest = sorted(odd, key=len, reverse=True)
        every = "|".join(map(re.escape, longest))
        # As in R, a number is a column only between backticks: 1 is the intercept.
        bare = "|".join(re.escape(name) for name in longest if not _NUMBER.fullmatch(name)) or "(?!)"
        self._odd = re.compile(rf"`({every})`|(?<![\w.])({bare})(?![\w.]*\()(?![\w])")

    def put(self, text: str) -> str:
        """Replace names by stand-ins."""
        if not self.stand_ins:
            return text
        return self._odd.sub(lambda found: self.stand_ins[found[1] or found[2]], text)

    def restored(self, text: str) -> str:
        """Replace stand-ins by names."""
        for name, stand_in in self.stand_ins.items():
            text = text.replace(stand_in, name)
        return text
