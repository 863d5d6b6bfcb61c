"""Columns of numbers in NumPy: missing values, places on a study's grid, clipped norms.

core/quantise.py handles one answer. This module applies the same operations to the numbers of many answers.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_client.documents.errors import AnswerError
from ldp_client.documents.rational import Rational
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


def refuse_missing(values: NDArray[Any], field: str, before: int = 0) -> None:
    """Raise AnswerError for a value that is not finite, with its first row, counted from before + 1."""
    numbers = values.astype(np.float64)
    for bad, key in ((np.isnan(numbers), "core.missing"), (np.isinf(numbers), "core.infinite")):
        if bad.any():
            raise AnswerError.say("core.row", field, row=before + int(bad.argmax()) + 1, problem=say(key))


def positions(values: NDArray[Any], bounds: tuple[Rational, Rational]) -> Floats:
    """Return core/quantise.grid_index for every value, without rounding, by the same operations on floats."""
    numbers = values.astype(np.float64)
    low, high = float(bounds[0]), float(bounds[1])
    with np.errstate(all="ignore"):
        share = np.clip((numbers - low) / (high - low), 0.0, 1.0)
    share = np.where(numbers >= high, 1.0, share)
    return np.where(numbers <= low, 0.0, share)


def signed(values: NDArray[Any], bounds: tuple[Rational, Rational], size: int) -> Integers:
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
