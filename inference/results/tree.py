"""Draws in ArviZ's form, with coordinates instead of brackets: as its tree, and as a NetCDF file.

xarray would write the same file, but takes a second to load.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from xarray import DataTree

Draws = Mapping[str, NDArray[np.float64]]
# Dimensions of the labels in brackets, for variables whose dimension has a special name.
DIMENSIONS = {"p": "choice", "coefficient": "feature"}
CHAINED = ("chain", "draw")


class Axis(NamedTuple):
    """A parsed name with brackets: its variable, and its label along each dimension."""

    variable: str
    coordinates: Mapping[str, str]


class Layout(NamedTuple):
    """The contents of ArviZ's tree.

    Attributes:
        groups: {group: {variable: array}}.
        dims: of each variable, besides chain and draw.
        coordinates: the labels along each dimension that has labels.
    """

    groups: Mapping[str, Mapping[str, NDArray[Any]]]
    dims: Mapping[str, list[str]]
    coordinates: Mapping[str, list[str]]


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


def layout_of(
    after: Draws, before: Draws, axes: Mapping[str, Axis], more: Mapping[str, Mapping[str, NDArray[Any]]]
) -> Layout:
    """Lay out the groups posterior and prior, with parameters placed by `axes`, and further groups."""
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
    return Layout(groups, {**dims, "reports": ["group"]}, labelled)


def _name(name: str) -> str:
    """Replace "/", which NetCDF reserves for groups, by a division slash, which looks the same."""
    return name.replace("/", "∕")


def tree_of(attributes: Mapping[str, Any], layout: Layout) -> DataTree:
    """Build ArviZ's tree."""
    import arviz_base

    return arviz_base.from_dict(
        layout.groups, attrs={"/": dict(attributes)}, dims=layout.dims, coords=layout.coordinates
    )


def netcdf_of(attributes: Mapping[str, Any], layout: Layout) -> bytes:
    """Return the NetCDF file's bytes, with the layout's groups; it opens as ArviZ's tree."""
    import h5netcdf
    import h5py

    # Write in memory: HDF5 does not recover if the disk fills while it writes.
    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        file.attrs.update(attributes)
        for name, variables in layout.groups.items():
            group = file.create_group(name)
            group.attrs["created_at"] = datetime.now(UTC).isoformat()
            group.attrs["creation_library"] = "ldpkit"
            group.attrs["creation_library_version"] = version("ldpkit")
            for variable, values in variables.items():
                # 1. Write its dimensions: without chains for data, and numbered if they have no names.
                first = () if "data" in name else CHAINED
                numbered = [f"{variable}_dim_{place}" for place in range(values.ndim - len(first))]
                dimensions = (*first, *layout.dims.get(variable, numbered))
                for dimension, size in zip(dimensions, values.shape, strict=True):
                    if dimension in group.dimensions:
                        continue
                    group.dimensions[dimension] = size
                    labels = layout.coordinates.get(dimension)
                    if labels is None:
                        group.create_variable(dimension, (dimension,), data=np.arange(size))
                    else:
                        text = np.asarray(labels, dtype=object)
                        group.create_variable(dimension, (dimension,), dtype=h5py.string_dtype(), data=text)
                # 2. Write its values.
                if values.dtype == bool:
                    stored = group.create_variable(variable, dimensions, data=values.astype(np.int8))
                    stored.attrs["dtype"] = "bool"
                else:
                    fill = {"fillvalue": np.nan} if values.dtype.kind == "f" else {}
                    group.create_variable(variable, dimensions, data=values, **fill)
    return buffer.getvalue()
