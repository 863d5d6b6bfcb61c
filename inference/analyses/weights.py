"""Columns of weights: how many people a row stands for."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inference.analyses.table import Values
from ldp_client.documents.errors import InputError

# Beyond all people, so that sums of squares stay numbers.
MOST_WEIGHT = 1e12


def positive(column: pd.Series, name: str, least: float = 1 / MOST_WEIGHT) -> Values:
    """Raises InputError unless all are numbers from `least` on, and not beyond all people."""
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
