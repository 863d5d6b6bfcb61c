"""Ensure that each parameter has a unique name, and a unique place in ArviZ's groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inference.analyses.parameter_names import Place
from inference.results.tree import netcdf
from ldp_client.documents.errors import InputError

# Names that the groups use besides parameters.
TAKEN = ("chain", "draw", "reports")


def refuse_same_names(parts: Sequence[Sequence[Place]], columns: Sequence[str]) -> None:
    """Raise InputError if two parameters would share a name, a place or a variable.

    parts: the places of parameters, for each part of an analysis. columns: the columns that may be renamed.
    """
    names: dict[str, Place] = {}
    places: dict[object, Place] = {}
    for place in (place for part in parts for place in part):
        first = names.setdefault(place.name, place)
        if first is not place:
            raise InputError(
                _one_name(place.name, first, place, columns), code="formula.parameter_name_clash"
            )
        at = (netcdf(place.axis.variable), *sorted(place.axis.coordinates.items()))
        first = places.setdefault(at, place)
        if first is not place:
            remedy = _remedy([first, place], columns)
            raise InputError(
                f"{remedy}: {first.name} and {place.name} would have the same place in the posterior's file",
                code="formula.parameter_place_clash",
            )
    _refuse_variables(parts, columns)


def refuse_twice(names: Iterable[str]) -> None:
    """Raise InputError for a name that occurs twice among an analysis's results."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(
                f"two results would be called {name}: rename one of the labels in it",
                code="result.duplicate_name",
            )
        seen.add(name)


def labels_of(combinations: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return one label for each combination. Raises InputError if two labels would be the same."""
    found: dict[str, tuple[str, ...]] = {}
    for one in combinations:
        first = found.setdefault(", ".join(label for label in one if label), one)
        if first is not one:
            raise InputError(_two_combinations(first, one), code="formula.combination_label_clash")
    return tuple(found)


def _refuse_variables(parts: Sequence[Sequence[Place]], columns: Sequence[str]) -> None:
    """Raise InputError for a variable shared by two parts or two shapes, or with a reserved name."""
    variables: dict[str, tuple[int, list[str], Place]] = {}
    taken = set(TAKEN)
    for number, part in enumerate(parts):
        for place in part:
            own = [netcdf(name) for name in place.axis.coordinates]
            variable = netcdf(place.axis.variable)
            first = variables.setdefault(variable, (number, own, place))
            if first[:2] != (number, own):
                raise InputError(
                    _one_name(variable, first[2], place, columns), code="formula.variable_name_clash"
                )
            taken.update(own)
    for variable in variables.keys() & taken:
        remedy = _remedy([variables[variable][2]], columns)
        raise InputError(
            f"{remedy}: the posterior's file reserves {variable}", code="formula.variable_name_reserved"
        )


def _one_name(name: str, first: Place, other: Place, columns: Sequence[str]) -> str:
    """Describe the clash of two parameters with the same name."""
    if first.what != other.what:
        remedy = _remedy([first, other], columns)
        return f"{remedy}: {first.what} and {other.what} would both be called {name}"
    if first.labels == other.labels:
        return f"{first.what} is in the formula twice: remove one, as in (0 + age | clinic)"
    return _two_combinations(first.labels, other.labels)


def _two_combinations(first: Sequence[str], other: Sequence[str]) -> str:
    one, two = (" with ".join(repr(label) for label in labels if label) for labels in (first, other))
    return f"{one} and {two} would have the same name: rename one of these labels"


def _remedy(places: Sequence[Place], columns: Sequence[str]) -> str:
    """Advise renaming the longest column of the terms: if one name is the end of another, it has both."""
    found = [name for name in columns for place in places if name in place.term]
    column = max(found, key=len, default=places[0].term)
    if not column.isidentifier() or column not in [place.term for place in places]:
        return f"rename column {column}"
    # A study's fields cannot be renamed.
    return f"rename column {column}, or write I({column}), of levels C({column})"
