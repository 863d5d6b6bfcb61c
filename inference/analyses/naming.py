"""What parameters are called: as bambi calls them, and where that puts them in ArviZ's groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

INTERCEPT = "Intercept"
Parameters = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Axis:
    """Of a name with brackets: the variable that it is a part of, and its label along each dimension."""

    variable: str
    coordinates: Mapping[str, str]


def named(term: str, *labels: str) -> str:
    """A parameter's name: a term, with its labels in brackets; empty ones stay out."""
    both = ", ".join(label for label in labels if label)
    return f"{term}[{both}]" if both else term


def axis_of(term: str, coordinates: Mapping[str, str]) -> Axis:
    """Where a parameter stands; empty labels stay out, as in its name."""
    return Axis(term, {dimension: label for dimension, label in coordinates.items() if label})
