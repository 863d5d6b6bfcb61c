"""Draws as a NetCDF file in ArviZ's layout. xarray would write the same file, but takes a second to load."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from inference.results.tree import Layout

if TYPE_CHECKING:
    from h5netcdf import Group

CHAINED = ("chain", "draw")


def netcdf_of(attributes: Mapping[str, Any], layout: Layout) -> bytes:
    """Return the file's bytes, with the layout's groups; it opens as ArviZ's tree."""
    import h5netcdf

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
                dimensions = _dimensions(name, variable, values, layout.dims)
                _write(group, variable, values, dimensions, layout.coordinates)
    return buffer.getvalue()


def _dimensions(
    group: str, name: str, values: NDArray[Any], dims: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Return a variable's dimensions: without chains for data, and numbered if it has no named dimensions."""
    first = () if "data" in group else CHAINED
    own = dims.get(name, [f"{name}_dim_{place}" for place in range(values.ndim - len(first))])
    return (*first, *own)


def _write(
    group: Group,
    name: str,
    values: NDArray[Any],
    dimensions: tuple[str, ...],
    coordinates: Mapping[str, Sequence[str]],
) -> None:
    import h5py

    for dimension, size in zip(dimensions, values.shape, strict=True):
        if dimension in group.dimensions:
            continue
        group.dimensions[dimension] = size
        labels = coordinates.get(dimension)
        if labels is None:
            group.create_variable(dimension, (dimension,), data=np.arange(size))
        else:
            text = np.asarray(labels, dtype=object)
            group.create_variable(dimension, (dimension,), dtype=h5py.string_dtype(), data=text)
    if values.dtype == bool:
        group.create_variable(name, dimensions, data=values.astype(np.int8)).attrs["dtype"] = "bool"
    else:
        fill = {"fillvalue": np.nan} if values.dtype.kind == "f" else {}
        group.create_variable(name, dimensions, data=values, **fill)
