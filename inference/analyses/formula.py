"""Formulas as in R and bambi, and the names of their parameters, with their places in ArviZ's groups."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from inference.default_priors import Stated
from inference.results.tree import Axis
from ldp_client.documents.errors import InputError
from ldp_client.words.text import nearest

INTERCEPT = "Intercept"
_POWER = re.compile(r"(?<![\w.)])([A-Za-z_][\w.]*)\s*(?:\^|\*\*)\s*\d")
_NUMBER = re.compile(r"[\d.]+")
# A term that varies by group, with the + that leads to it; calls inside it have no further brackets inside.
_VARYING = re.compile(r"(?:^|\+)\s*\(((?:[^()|]|\([^()]*\))+)\|{1,2}([^()|]+)\)")
# The inside of a call, of braces or of backticks.
_INSIDE = re.compile(r"(?<=[\w.`])\([^()]*\)|\{[^{}]*\}|`[^`]*`")


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
    right = sides[1].strip()
    fixed = _VARYING.sub("", right).strip().removeprefix("+").strip() or "1"
    if "|" in fixed:
        raise InputError(
            f"in {text!r} write terms that vary by group in brackets after a +, such as + (1 | clinic)",
            code="formula.varying_not_readable",
        )
    varying = []
    for found in _VARYING.finditer(right):
        expression, group = found[1].strip(), found[2].strip().strip("`")
        known_column(group, columns, f"({expression} | {group}): the group must be one column; ")
        varying.append(Varying(group, expression))
    for side in (fixed, *(one.expression for one in varying)):
        _refuse_bare_power(side, text)
    return Formula(text, outcome, fixed, tuple(varying))


def _refuse_bare_power(side: str, text: str) -> None:
    """Raise InputError for a power that R's grammar would read as the column itself."""
    before, bare = "", side
    while before != bare:
        before, bare = bare, _INSIDE.sub("", bare)
    power = _POWER.search(bare)
    if power:
        raise InputError(
            f"in {text!r} a power of {power[1]} means {power[1]} itself, as in R: write I({power[1]}**2)",
            code="formula.bare_power",
        )


def known_column(name: str, columns: Sequence[str], lead: str = "") -> str:
    """Return the name, if it is a column. Raises InputError that lists the columns."""
    if name in columns:
        return name
    near = nearest(name, columns)
    hint = f"; did you mean {near}?" if near else f": there are {', '.join(columns)}"
    raise InputError(f"{lead}there is no column {name!r}{hint}", code="table.unknown_column")


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


def named(term: str, *labels: str) -> str:
    """Return a parameter's name: a term, with its non-empty labels in brackets."""
    both = ", ".join(label for label in labels if label)
    return f"{term}[{both}]" if both else term


class Labels(NamedTuple):
    """The labels of linear predictors that are drawn together.

    outputs: of each, ("",) for one. dimension: of the outputs in ArviZ's groups. lead: the prefix of names.
    """

    outputs: tuple[str, ...]
    dimension: str
    lead: str = ""


class Parameter(NamedTuple):
    """A parameter: a variable of ArviZ's groups, and its place there.

    coordinates: {dimension: label}. prior: None if it follows from others. own: False if the prior applies to
    the intercept at the columns' means instead. spread: of a coefficient, its column's sd; 1 for a level.
    """

    variable: str
    coordinates: Mapping[str, str] = {}
    prior: Stated | None = None
    own: bool = True
    spread: float | None = None

    @property
    def name(self) -> str:
        """Return the variable, with the labels in brackets, as in bambi."""
        return named(self.variable, *self.coordinates.values())

    @property
    def axis(self) -> Axis:
        """Return its place in ArviZ's groups, where empty labels have no dimension."""
        return Axis(self.variable, {key: label for key, label in self.coordinates.items() if label})


def by_name(results: Iterable[Any]) -> dict[str, Any]:
    """Return parameters or quantities by name. Raises InputError for two of one name: one would be lost."""
    found = [(result.name, result) for result in results]
    refuse_twice(name for name, _ in found)
    return dict(found)


def refuse_twice(names: Iterable[str]) -> None:
    """Raise InputError for two results of one name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"two results would be called {twice[0]}: rename the column or label of that name, or "
            "write I(column)",
            code="result.duplicate_name",
        )
