"""The posterior of an analysis: draws of coefficients, named and grouped as in bambi."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.analyses.peaks import Peak
from inference.results.posterior import Posterior
from inference.results.quantity import Quantity
from inference.results.tree import Axis
from ldp_client.documents.errors import InputError
from ldp_client.words.text import nearest

Draws = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class AnalysisPosterior(Posterior):
    """The posterior of a formula.

    Attributes:
        formula: as given.
        form: whether reports were counted together or one by one.
        axes: for each parameter with brackets in its name, its place in ArviZ's groups.
        mode: of the posterior density; under flat priors it is the maximum likelihood estimate.
        stated: how the design or the study describes the noise.
        spreads: each coefficient's column's sd.
    """

    formula: str = ""
    form: str = ""
    axes: Mapping[str, Axis] = field(default_factory=dict)
    mode: Peak | None = None
    stated: tuple[str, ...] = ()
    spreads: Mapping[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Quantity:
        """Return a coefficient, or an odds ratio, share, difference or total, by its name."""
        found = {one.name: one for one in self.quantities}
        if name in found and name not in self.draws:
            known = self.quantity(name, found[name].words, found[name].draws)
            return replace(known, contrast=found[name].contrast, origin=self._origin(found[name]))
        if name not in self.draws and (near := nearest(str(name), [*self.draws, *found])) is not None:
            raise InputError(
                f"there is no {name!r} of {self.question}: did you mean {near!r}?",
                code="result.unknown_parameter",
            )
        return super().__getitem__(name)

    def _origin(self, found: Quantity) -> Any:
        """Return what its draws belong to: the coefficients, if their number is the same."""
        return self.draws if found.draws.shape == next(iter(self.draws.values())).shape else found.draws

    @cached_property
    def headlines(self) -> tuple[str, ...]:
        """Return the coefficients; of a crossed table, the shares."""
        return tuple(name for name in self.draws if name in self.spreads) or super().headlines

    def is_share(self, name: str) -> bool:
        """Return True if a parameter is a share. Coefficients are not, whatever their columns are called."""
        return not self.spreads and super().is_share(name)

    def _attributes(self) -> dict[str, Any]:
        return {**super()._attributes(), "formula": self.formula}

    def _axes(self) -> Mapping[str, Axis]:
        return self.axes or super()._axes()

    def to_document(self) -> dict[str, Any]:
        """Return this analysis's entry in posterior.json."""
        found = super().to_document()
        found |= {"formula": self.formula, "form": self.form, "noise": list(self.stated)}
        if self.mode is not None:
            found["mode"] = self.mode.to_document()
        found["quantities"] = {one.name: one.to_document() for one in self.quantities}
        return found
