"""Draws in ArviZ's form: groups of variables, with coordinates instead of brackets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from xarray import DataTree

Draws = NDArray[np.float64]
# Dimensions of the labels in brackets, for variables whose dimension has a special name.
DIMENSIONS = {"p": "choice", "coefficient": "feature"}


@dataclass(frozen=True)
class Axis:
    """A parsed name with brackets: its variable, and its label along each dimension."""

    variable: str
    coordinates: Mapping[str, str]


def axes_of(names: Mapping[str, Any]) -> dict[str, Axis]:
    """Return the axes of parameters called name[x], name[y] …: `choice`, `feature` or `name_of`."""
    found = {}
    for whole in names:
        name, bracket, rest = whole.partition("[")
        if bracket:
            # A scalar of the same name keeps it.
            variable = f"{name}_each" if name in names else name
            dimension = DIMENSIONS.get(name, f"{name}_of")
            found[whole] = Axis(variable, {dimension: rest.removesuffix("]")})
    return found


@dataclass(frozen=True)
class Layout:
    """The contents of ArviZ's tree.

    groups: {group: {variable: array}}. dims: of each variable, besides chain and draw. coordinates: the
    labels along each dimension that has labels.
    """

    groups: Mapping[str, Mapping[str, NDArray[Any]]]
    dims: Mapping[str, list[str]]
    coordinates: Mapping[str, list[str]]


def layout_of(
    groups: Mapping[str, Mapping[str, Draws]],
    axes: Mapping[str, Axis],
    checks: Mapping[str, Mapping[str, NDArray[Any]]],
) -> Layout:
    """Lay out {"posterior": {parameter: (chains, draws)}, …}, with parameters placed by `axes`.

    checks: other groups, used unchanged.
    """
    found = {name: stacked(draws, axes) for name, draws in groups.items() if draws}
    dims, coordinates = _layout(groups["posterior"], axes)
    named = {name: labels for name, (labels, _) in coordinates.items()}
    return Layout({**found, **checks}, {**dims, "reports": ["group"]}, named)


def tree_of(attributes: Mapping[str, Any], layout: Layout) -> DataTree:
    """Build ArviZ's tree."""
    import arviz_base

    return arviz_base.from_dict(
        layout.groups, attrs={"/": dict(attributes)}, dims=layout.dims, coords=layout.coordinates
    )


def _layout(
    draws: Mapping[str, Draws], axes: Mapping[str, Axis]
) -> tuple[dict[str, list[str]], dict[str, tuple[list[str], dict[str, int]]]]:
    """Return each variable's dimensions, and each dimension's labels with their places."""
    dims: dict[str, list[str]] = {}
    coordinates: dict[str, tuple[list[str], dict[str, int]]] = {}
    for name in draws:
        if name not in axes:
            continue
        axis = axes[name]
        dims[netcdf(axis.variable)] = [netcdf(dimension) for dimension in axis.coordinates]
        for dimension, label in axis.coordinates.items():
            labels, places = coordinates.setdefault(netcdf(dimension), ([], {}))
            if label not in places:
                places[label] = len(labels)
                labels.append(label)
    return dims, coordinates


def stacked(draws: Mapping[str, Draws], axes: Mapping[str, Axis]) -> dict[str, Draws]:
    """Stack draws into variables with their coordinates as axes; entries without draws are NaN."""
    dims, coordinates = _layout(draws, axes)
    found: dict[str, Draws] = {}
    for name, values in draws.items():
        if name not in axes:
            found[netcdf(name)] = values
            continue
        variable = netcdf(axes[name].variable)
        shape = tuple(len(coordinates[dimension][0]) for dimension in dims[variable])
        if variable not in found:
            found[variable] = np.full((*values.shape, *shape), np.nan)
        place: tuple[Any, ...] = tuple(
            coordinates[netcdf(dimension)][1][label] for dimension, label in axes[name].coordinates.items()
        )
        found[variable][(..., *place)] = values
    return found


def netcdf(name: str) -> str:
    """Replace "/", which NetCDF reserves for groups, by a division slash, which looks the same."""
    return name.replace("/", "∕")
