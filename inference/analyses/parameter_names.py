"""Names of parameters, as in bambi, and their places in ArviZ's groups."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from inference.default_priors import Stated
from inference.results.tree import Axis
from ldp_client.documents.errors import InputError

INTERCEPT = "Intercept"


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
