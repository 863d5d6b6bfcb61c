"""Columns of weights: the number of people that each row represents."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inference.analyses.table import Values
from ldp_client.documents.errors import InputError

# More than all people on earth; sums of squares stay finite.
MOST_WEIGHT = 1e12


def positive(column: pd.Series, name: str, least: float = 1 / MOST_WEIGHT) -> Values:
    """Return the column as numbers. Raises InputError unless all are between `least` and MOST_WEIGHT."""
    if not pd.api.types.is_numeric_dtype(column):
        raise InputError(f"{name} must hold numbers", code="weights.not_numbers")
    values = column.to_numpy(np.float64)
    good = np.isfinite(values) & (values >= least) & (values <= MOST_WEIGHT)
    if not good.all():
        row = int(np.flatnonzero(~good)[0]) + 1
        how = "positive" if least > 0 else "0 or more"
        raise InputError(
            f"{name} must be {how}, and at most {MOST_WEIGHT:.0e}: look at row {row}",
            code="weights.not_positive",
        )
    return values
