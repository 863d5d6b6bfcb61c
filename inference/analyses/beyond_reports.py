"""People of a census whose numbers lie beyond all reports: what is said of them no report bears out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inference.analyses.program import Assembled
from inference.analyses.table import Values
from inference.analyses.varying import level_text
from inference.results.diagnostics import listed

# From this part of its people on, shares in a census are of lines drawn on, more than of reports.
MOSTLY = 0.5


@dataclass(frozen=True)
class Beyond:
    """Which rows of a census have a number beyond all reports, which lie between low and high."""

    name: str
    rows: NDArray[np.bool_]
    low: float
    high: float

    def in_words(self, weights: Values) -> str:
        """How many people these are."""
        return (
            f"{weights[self.rows].sum():,.0f} of {weights.sum():,.0f} people have {self.name} beyond all "
            f"reports ({level_text(self.low)} to {level_text(self.high)}): what is said of them is a line "
            "drawn on, which no report bears out"
        )


def beyond(analysis: Assembled, people: pd.DataFrame, weights: Values) -> Iterator[Beyond]:
    """The numbers of the law that some people have where no report was."""
    for name, reported in analysis.cells.frame.items():
        if not pd.api.types.is_numeric_dtype(reported) or pd.api.types.is_bool_dtype(reported):
            continue
        low, high = float(reported.min()), float(reported.max())
        values = people[name].to_numpy(np.float64)
        rows = (values < low) | (values > high)
        if weights[rows].sum() and name in analysis.law_columns:
            yield Beyond(str(name), rows, low, high)


def mostly_beyond(analysis: Assembled, people: pd.DataFrame, weights: Values) -> Iterator[str]:
    """Why shares in a census say little, where most of its people lie beyond all reports in some number."""
    found = list(beyond(analysis, people, weights))
    many = weights[np.any([one.rows for one in found], axis=0)].sum() if found else 0.0
    if many > MOSTLY * weights.sum():
        yield (
            f"{many:,.0f} of {weights.sum():,.0f} people of the census lie beyond all reports in "
            f"{listed([one.name for one in found])}: shares and totals in the census are mostly a line drawn "
            "on, which no report bears out; look at how it is written there, or ask such people"
        )
