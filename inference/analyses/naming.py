"""What parameters are called: as bambi calls them, and where that puts them in ArviZ's groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from inference.results.tree import Axis
from ldp_client.documents.errors import InputError

INTERCEPT = "Intercept"
Parameters = dict[str, NDArray[np.float64]]
Found = TypeVar("Found")


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
