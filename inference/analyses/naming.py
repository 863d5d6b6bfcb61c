"""What parameters are called: as bambi calls them, and where that puts them in ArviZ's groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from inference.results.tree import Axis
from ldp_client.documents.errors import InputError

INTERCEPT = "Intercept"
Parameters = dict[str, NDArray[np.float64]]
Found = TypeVar("Found")


@dataclass(frozen=True)
class Numbered:
    """All columns that are called this and a number: w1, w2, …, or w001, w002, …."""

    beginning: str


Name = str | Numbered


def expanded(names: Sequence[Name], columns: Sequence[str]) -> list[str]:
    """The names, numbered ones as the columns that they stand for, by their numbers.

    Raises InputError where there are none, or a number is missing between two.
    """
    found: list[str] = []
    for name in names:
        found += [name] if isinstance(name, str) else _numbered(name.beginning, columns)
    return list(dict.fromkeys(found)) if any(isinstance(name, Numbered) for name in names) else found


def _numbered(beginning: str, columns: Sequence[str]) -> list[str]:
    ends = {name: name[len(beginning) :] for name in columns if name.startswith(beginning)}
    numbers = {name: int(end) for name, end in ends.items() if end.isascii() and end.isdigit()}
    if not numbers:
        raise InputError(
            f"no column is called {beginning} and a number, such as {beginning}1",
            code="weights.no_numbered_column",
        )
    order = sorted(numbers, key=lambda name: numbers[name])
    for before, after in zip(order, order[1:], strict=False):
        if numbers[after] != numbers[before] + 1:
            raise InputError(
                f"columns {before} and {after} follow each other, and none is between them: give all that "
                f"begin with {beginning}, or list those that are meant",
                code="weights.middle_number_missing",
            )
    if numbers[order[0]] > 1:
        raise InputError(
            f"the first column of {beginning} and a number is {order[0]}: give all from 1 on",
            code="weights.first_number_missing",
        )
    return order


def named(term: str, *labels: str) -> str:
    """A parameter's name: a term, with its labels in brackets; empty ones stay out."""
    both = ", ".join(label for label in labels if label)
    return f"{term}[{both}]" if both else term


def axis_of(term: str, coordinates: Mapping[str, str]) -> Axis:
    """Where a parameter stands; empty labels stay out, as in its name."""
    return Axis(term, {dimension: label for dimension, label in coordinates.items() if label})


@dataclass(frozen=True)
class Place:
    """A parameter's name, and where it stands in ArviZ's groups.

    what: it is, in words, of a term. term: after which it is called. labels: all that its name may have.
    """

    name: str
    axis: Axis
    what: str
    term: str = ""
    labels: tuple[str, ...] = ()


def united(*parts: Mapping[str, Found]) -> dict[str, Found]:
    """All of them. Raises InputError for a name that two of them have, of which one would go unsaid."""
    found: dict[str, Found] = {}
    for part in parts:
        both = found.keys() & part.keys()
        if both:
            raise InputError(
                f"two parameters would be called {min(both)}: rename a column of that name",
                code="formula.duplicate_parameter",
            )
        found |= part
    return found
