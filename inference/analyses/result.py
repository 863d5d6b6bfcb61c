"""The posterior of an analysis: draws of coefficients, named and grouped as bambi does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import arviz_base
import numpy as np
from numpy.typing import NDArray
from xarray import DataTree

from inference.analyses.naming import Axis
from inference.analyses.peaks import Peak
from inference.results.posterior import QUANTILES, Posterior

Draws = NDArray[np.float64]


@dataclass(frozen=True)
class Quantity:
    """What follows from coefficients and is quoted: words say what the draws (chains, draws) are.

    contrast: whether it is a difference between two groups, which may be on either side of zero.
    """

    name: str
    words: str
    draws: Draws
    contrast: bool = False

    @property
    def above(self) -> float:
        """The probability that it is above zero."""
        return float(np.mean(self.draws > 0))

    def to_document(self) -> dict[str, Any]:
        """Its entry in posterior.json."""
        quantiles = {label: float(np.quantile(self.draws, level)) for label, level in QUANTILES.items()}
        found: dict[str, Any] = {
            "words": self.words,
            "mean": float(self.draws.mean()),
            "sd": float(self.draws.std()),
            **quantiles,
        }
        if self.contrast:
            found["direction"] = "above 0" if self.above >= 0.5 else "below 0"
            found["probability_of_direction"] = max(self.above, float(np.mean(self.draws < 0)))
        return found


@dataclass(frozen=True)
class AnalysisPosterior(Posterior):
    """The posterior of a formula.

    Attributes:
        formula: as it was given.
        form: whether reports were counted together or taken one by one.
        axes: of each parameter whose name has brackets, where it stands in ArviZ's groups.
        quantities: odds ratios, shares, differences and totals.
        mode: of the posterior density, and of the likelihood where it has one.
        stated: what the design or the study says of the noise, in words.
        spreads: of each coefficient its column's sd.
    """

    formula: str = ""
    form: str = ""
    axes: Mapping[str, Axis] = field(default_factory=dict)
    quantities: tuple[Quantity, ...] = ()
    mode: Peak | None = None
    maximum_likelihood: Peak | None = None
    stated: tuple[str, ...] = ()
    spreads: Mapping[str, float] = field(default_factory=dict)

    def to_arviz(self) -> DataTree:
        """Return the draws as ArviZ reads them, with the groups and coordinates that bambi gives.

        Returns:
            A tree whose attributes are formula, outcome, model and seed. A factor's coefficients are one
            variable, its levels along `factor_dim`.
        """
        attributes = {
            "study": self.study, "question": self.question, "model": self.model, "seed": self.seed,
            "formula": self.formula,
        }  # fmt: skip
        groups = {"posterior": self.draws}
        if self.prior_draws:
            groups["prior"] = {name: draws[None] for name, draws in self.prior_draws.items()}
        stacked = {name: _stacked(draws, self.axes) for name, draws in groups.items()}
        dims, coordinates = _layout(self.draws, self.axes)
        return arviz_base.from_dict(stacked, attrs={"/": attributes}, dims=dims, coords=coordinates)

    def to_document(self) -> dict[str, Any]:
        """Return this analysis's entry in posterior.json."""
        found = super().to_document()
        found |= {"formula": self.formula, "form": self.form, "noise": list(self.stated)}
        if self.mode is not None:
            found["mode"] = self.mode.to_document()
        if self.maximum_likelihood is not None:
            found["maximum_likelihood"] = self.maximum_likelihood.to_document()
        found["quantities"] = {one.name: one.to_document() for one in self.quantities}
        return found


def _layout(
    draws: Mapping[str, Draws], axes: Mapping[str, Axis]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The dimensions of each variable, and the labels along each dimension."""
    dims: dict[str, list[str]] = {}
    coordinates: dict[str, list[str]] = {}
    for name in draws:
        if name not in axes:
            continue
        axis = axes[name]
        dims[_netcdf(axis.variable)] = [_netcdf(dimension) for dimension in axis.coordinates]
        for dimension, label in axis.coordinates.items():
            labels = coordinates.setdefault(_netcdf(dimension), [])
            if label not in labels:
                labels.append(label)
    return dims, coordinates


def _stacked(draws: Mapping[str, Draws], axes: Mapping[str, Axis]) -> dict[str, Draws]:
    """Variables with their coordinates as axes; what has no draws is not a number."""
    dims, coordinates = _layout(draws, axes)
    found: dict[str, Draws] = {}
    for name, values in draws.items():
        if name not in axes:
            found[_netcdf(name)] = values
            continue
        variable = _netcdf(axes[name].variable)
        shape = tuple(len(coordinates[dimension]) for dimension in dims[variable])
        whole = found.setdefault(variable, np.full((*values.shape, *shape), np.nan))
        place: list[Any] = [
            coordinates[_netcdf(dimension)].index(label)
            for dimension, label in axes[name].coordinates.items()
        ]
        whole[(..., *place)] = values
    return found


def _netcdf(name: str) -> str:
    """NetCDF keeps "/" for groups; a division slash looks the same."""
    return name.replace("/", "∕")
