"""Names of parameters, as in bambi, and their places in ArviZ's groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from inference.default_priors import Stated
from inference.results.tree import Axis
from ldp_client.documents.errors import InputError

INTERCEPT = "Intercept"
Parameters = dict[str, NDArray[np.float64]]
Found = TypeVar("Found")


def named(term: str, *labels: str) -> str:
    """Return a parameter's name: a term, with its non-empty labels in brackets."""
    both = ", ".join(label for label in labels if label)
    return f"{term}[{both}]" if both else term


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


def united(*parts: Mapping[str, Found]) -> dict[str, Found]:
    """Merge all of them. Raises InputError if two have the same name, because one would be lost."""
    found: dict[str, Found] = {}
    for part in parts:
        both = found.keys() & part.keys()
        if both:
            raise _two_results(min(both))
        found |= part
    return found


def refuse_clashes(parameters: Sequence[Parameter]) -> None:
    """Raise InputError for two parameters of one name, or of one variable with other dimensions."""
    united(*({one.name: one} for one in parameters))
    dimensions = {name: [name] for name in ("chain", "draw", "reports")}
    for one in parameters:
        own = list(one.axis.coordinates)
        if dimensions.setdefault(one.variable, own) != own:
            raise _two_results(one.variable)


def _two_results(name: str) -> InputError:
    """Return the error for a name that two results of an analysis would have."""
    return InputError(
        f"two results would be called {name}: rename the column or label of that name, or write I(column)",
        code="result.duplicate_name",
    )
