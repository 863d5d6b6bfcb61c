"""Private columns whose reports have one stated law."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inference.analyses.table import Codes, Looks, Private, Values, with_missing


def known_channel(
    name: str,
    answers: Sequence[str],
    reports: Sequence[int] | Codes,
    matrix: Sequence[Sequence[float]] | Values,
    ordered: bool = False,
) -> Private:
    """Return a private column under one matrix P(report | answer), (answers, reports); −1 is missing."""
    known = np.asarray(matrix, np.float64)
    width = known.shape[1]
    looks = Looks(np.eye(width), np.zeros(width, np.int64), known[None])
    codes = np.asarray(reports, np.int64)
    return with_missing(Private(name, tuple(answers), codes, known.T, ordered=ordered, looks=looks))
