"""Masked arrays: what is masked is missing, whatever value lies under the mask."""

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def without_mask(answers: "Any") -> "Any":
    """A masked array without its mask: NaN for a masked number, else a list with None; both are refused."""
    if not isinstance(answers, np.ma.MaskedArray):
        return answers
    if not np.ma.getmaskarray(answers).any():
        return answers.data
    if answers.dtype.kind in "iuf":
        return np.ma.filled(answers.astype(np.float64), np.nan)
    return answers.tolist()
