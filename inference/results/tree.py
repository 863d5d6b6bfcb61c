"""Draws in ArviZ's form, with coordinates instead of brackets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from xarray import DataTree

Draws = Mapping[str, NDArray[np.float64]]
# Dimensions of the labels in brackets, for variables whose dimension has a special name.
DIMENSIONS = {"p": "choice", "coefficient": "feature"}


class Axis(NamedTuple):
    """A parsed name with brackets: its variable, and its label along each dimension."""

    variable: str
    coordinates: Mapping[str, str]


def axes_of(names: Mapping[str, Any]) -> dict[str, Axis]:
    """Return the axes of parameters called name[x], name[y] …: `choice`, `feature` or `name_of`."""
    axes = {}
    for whole in names:
        name, bracket, rest = whole.partition("[")
        if bracket:
            # A scalar of the same name keeps it.
            variable = f"{name}_each" if name in names else name
            axes[whole] = Axis(variable, {DIMENSIONS.get(name, f"{name}_of"): rest.removesuffix("]")})
    return axes


def tree_of(
    after: Draws,
    before: Draws,
    axes: Mapping[str, Axis],
    more: Mapping[str, Mapping[str, NDArray[Any]]],
    attributes: Mapping[str, Any],
) -> DataTree:
    """Build ArviZ's tree of the groups posterior and prior, placed by `axes`, and of further groups."""
    import arviz_base

    dims: dict[str, list[str]] = {}
    places: dict[str, dict[str, int]] = {}
    for name, axis in axes.items():
        if name in after:
            dims[_name(axis.variable)] = [_name(dimension) for dimension in axis.coordinates]
            for dimension, label in axis.coordinates.items():
                labels = places.setdefault(_name(dimension), {})
                labels.setdefault(label, len(labels))

    def stacked(draws: Draws) -> dict[str, NDArray[np.float64]]:
        """Stack draws into variables with their coordinates as axes; entries without draws are NaN."""
        variables: dict[str, NDArray[np.float64]] = {}
        for name, values in draws.items():
            if name not in axes:
                variables[_name(name)] = values
                continue
            variable = _name(axes[name].variable)
            shape = [len(places[dimension]) for dimension in dims[variable]]
            if variable not in variables:
                variables[variable] = np.full((*values.shape, *shape), np.nan)
            at: tuple[Any, ...] = tuple(
                places[_name(key)][label] for key, label in axes[name].coordinates.items()
            )
            variables[variable][(..., *at)] = values
        return variables

    groups = {"posterior": stacked(after), **({"prior": stacked(before)} if before else {}), **more}
    labelled = {name: list(labels) for name, labels in places.items()}
    return arviz_base.from_dict(
        groups, attrs={"/": dict(attributes)}, dims={**dims, "reports": ["group"]}, coords=labelled
    )


def _name(name: str) -> str:
    """Replace "/", which NetCDF reserves for groups, by a division slash, which looks the same."""
    return name.replace("/", "∕")
