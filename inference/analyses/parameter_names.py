"""Names of parameters, as in bambi, and their places in ArviZ's groups."""

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
    """Return a parameter's name: a term, with its non-empty labels in brackets."""
    both = ", ".join(label for label in labels if label)
    return f"{term}[{both}]" if both else term


def axis_of(term: str, coordinates: Mapping[str, str]) -> Axis:
    """Return a parameter's axis, with non-empty labels as coordinates, as in its name."""
    return Axis(term, {dimension: label for dimension, label in coordinates.items() if label})


@dataclass(frozen=True)
class Place:
    """A parameter's name, and its place in ArviZ's groups.

    what: a description, with the term. term: the term in its name. labels: all labels that its name may have.
    """

    name: str
    axis: Axis
    what: str
    term: str = ""
    labels: tuple[str, ...] = ()


def united(*parts: Mapping[str, Found]) -> dict[str, Found]:
    """Merge all of them. Raises InputError if two have the same name, because one would be lost."""
    found: dict[str, Found] = {}
    for part in parts:
        both = found.keys() & part.keys()
        if both:
            raise InputError(
                f"two parameters would be called {min(both)}: rename the column of that name",
                code="formula.duplicate_parameter",
            )
        found |= part
    return found
