"""Records as the vectors whose products are summed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.units import RecordUnits
from schemas import Question


def record_vectors(
    question: Question, weight: float, answers: Mapping[str, NDArray[Any]]
) -> NDArray[np.float64]:
    """v = (constant, features, response) of each record in scaled units, (n, d + 2)."""
    units = RecordUnits(question)
    assert question.response is not None
    features = (np.column_stack([answers[name] for name in units.names]) - units.zero) / units.unit
    response = np.asarray(answers[question.response.id])
    if response.dtype == np.bool_:
        response = np.where(response, 1.0, -1.0)
    scaled = (response - units.response.zero) / units.response.unit
    return np.column_stack([np.full(len(features), weight), features, weight * scaled])
