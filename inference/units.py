"""A question's own units and the scaled units in which models compute: own = zero + unit × scaled."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_client.documents.question import Field
from schemas import Question


class Units(NamedTuple):
    """The place of the scaled 0, and the length of the scaled 1, in own units."""

    zero: float
    unit: float


YES_NO_UNITS = Units(0.5, 0.5)


def number_units(question: Question) -> Units:
    """Return a number's units: its bounds are 0 and 1."""
    assert question.bounds is not None
    low, high = (float(bound) for bound in question.bounds)
    return Units(low, high - low)


def field_units(field: Field) -> Units:
    """A field's bounds are −1 and 1; a yes/no response is −1 or 1 already: features are RecordUnits'."""
    if field.bounds is None:
        return Units(0.0, 1.0)
    low, high = (float(bound) for bound in field.bounds)
    return Units((low + high) / 2, (high - low) / 2)


def has_levels(question: Question) -> bool:
    """Return True if a record's features are taken as cells: a feature is a choice, or has bins."""
    return any(field.cuts or field.choices for field in question.features)


class RecordUnits:
    """names: of the linear predictor's feature terms. zero, unit (d,): their units. response: its units.

    The terms are the features, and each choice but the first of a choice; owners are the features' ids. A
    yes/no feature is 0 or 1 in own units, as coefficients are usually read, and −1 or 1 scaled; so is each
    choice, but shifted to a mean over the choices of 0.
    """

    zero: NDArray[np.float64]
    unit: NDArray[np.float64]

    def __init__(self, question: Question) -> None:
        assert question.response is not None
        self.names, self.owners, spans = [], [], []
        for field in question.features:
            own = field_units(field) if field.bounds else YES_NO_UNITS
            labels = field.choices[1:]
            self.names += [f"{field.id}={label}" for label in labels] or [field.id]
            self.owners += [field.id] * max(1, len(labels))
            spans += [Units(1 / len(field.choices), 0.5) for _ in labels] or [own]
        self.zero, self.unit = np.asarray(spans).T
        self.response = field_units(question.response)
