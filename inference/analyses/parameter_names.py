"""Names of parameters, as in bambi, and their places in ArviZ's groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def united(*parts: Mapping[str, Found]) -> dict[str, Found]:
    """Merge all of them. Raises InputError if two have the same name, because one would be lost."""
    found: dict[str, Found] = {}
    for part in parts:
        both = found.keys() & part.keys()
        if both:
            raise _two_results(min(both))
        found |= part
    return found


def refuse_clashes(names: Iterable[str], axes: Mapping[str, Axis]) -> None:
    """Raise InputError if parameters of one variable of the posterior's file have other dimensions."""
    dimensions = {name: [name] for name in ("chain", "draw", "reports")}
    for name in names:
        axis = axes.get(name, Axis(name, {}))
        if dimensions.setdefault(axis.variable, list(axis.coordinates)) != list(axis.coordinates):
            raise _two_results(axis.variable)


def _two_results(name: str) -> InputError:
    """Return the error for a name that two results of an analysis would have."""
    return InputError(
        f"two results would be called {name}: rename the column or label of that name, or write I(column)",
        code="result.duplicate_name",
    )
