"""Columns of numbers in NumPy: missing values, places on a study's grid, clipped norms.

core/quantise.py handles one answer. This module applies the same operations to the numbers of many answers.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_client.core.quantise import as_float
from ldp_client.documents.errors import AnswerError
from ldp_client.words.text import say

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def without_mask(answers: Any) -> Any:
    """Return a masked array without its mask. Later checks reject its missing values.

    A masked number becomes NaN; other types become a list with None.
    """
    if not isinstance(answers, np.ma.MaskedArray):
        return answers
    if not np.ma.getmaskarray(answers).any():
        return answers.data
    if answers.dtype.kind in "iuf":
        return np.ma.filled(answers.astype(np.float64), np.nan)
    return answers.tolist()


def is_missing(value: Any) -> bool:
    """Return True for None, NaN, or what data frames have for either."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):
        # An array, or a signalling NaN: it is not missing, and no answer.
        return False


def numbers(column: Any, field: str, before: int = 0) -> Floats:
    """Return a column of numbers as floats, infinite for an integer beyond all floats.

    Raises AnswerError, with the first wrong row, counted from before + 1.
    """
    column = without_mask(column)
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    if kind in "mM":
        raise AnswerError.say("core.times", field)
    if kind in "iuf":
        # Convert before the test: pandas skips its missing numbers (pd.NA) in `all`.
        converted: Floats = np.asarray(column, np.float64)
        if np.isfinite(converted).all():
            return converted
    floats = np.empty(len(column))
    for place, value in enumerate(column.tolist() if hasattr(column, "dtype") else column):
        try:
            floats[place] = as_float(value, field)
        except AnswerError as error:
            problem = say("core.missing") if is_missing(value) else error.problem
            raise AnswerError.say("core.row", field, row=before + place + 1, problem=problem) from None
    return floats


def positions(values: Floats, bounds: tuple[Fraction, Fraction]) -> Floats:
    """Return core/quantise.grid_index for every value, without rounding, by the same operations on floats."""
    low, high = float(bounds[0]), float(bounds[1])
    with np.errstate(all="ignore"):
        share = np.clip((values - low) / (high - low), 0.0, 1.0)
    share = np.where(values >= high, 1.0, share)
    return np.where(values <= low, 0.0, share)


def signed(values: Floats, bounds: tuple[Fraction, Fraction], size: int) -> Integers:
    """Return core/quantise.signed_units for every value."""
    return (positions(values, bounds) * (2 * size) + 0.5).astype(np.int64) - size


def clip_norms(vectors: Integers, radius: int) -> Integers:
    """Apply core/quantise.clip_norm to every row."""
    squares = np.maximum((vectors * vectors).sum(axis=1), 1) - 1
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    roots -= roots * roots > squares
    roots += (roots + 1) ** 2 <= squares
    lengths = np.maximum(roots + 1, radius)[:, None]
    clipped: Integers = np.sign(vectors) * (np.abs(vectors) * radius // lengths)
    return clipped
