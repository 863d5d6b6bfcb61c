"""Quantise many answers on the study's grid as `quantise` does one. Arrays need no loop over answers."""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_client.columns import arrays
from ldp_client.columns.clipping import is_clipped, largest_square
from ldp_client.core.quantise import UNIT
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.documents.question import Field
from ldp_client.mechanisms import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.gaussian_record import GaussianRecord
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.number import NumberMechanism, RefusableNumber
from ldp_client.mechanisms.record import RecordMechanism
from ldp_client.mechanisms.sampled_products import SampledProducts
from ldp_client.mechanisms.tables.rows import NO_ROWS
from ldp_client.words.text import say

Quantised = Sequence[Any] | arrays.Integers


def in_rows(field: str, answers: Any) -> Any:
    """Return answers that can be read more than once. Raises AnswerError for times, or without rows.

    A time is stored as an integer in some unit: that integer is not what the participant answered.
    """
    if isinstance(answers, dict):
        return {name: in_rows(f"{field}.{name}", column) for name, column in answers.items()}
    if isinstance(answers, NO_ROWS) or not hasattr(answers, "__iter__") or getattr(answers, "ndim", 1) == 0:
        raise AnswerError.say("core.rows", field)
    if getattr(getattr(answers, "dtype", None), "kind", "") in ("m", "M"):
        raise AnswerError.say("core.times", field)
    return answers if hasattr(answers, "__len__") else list(answers)


def with_blanks(mechanism: Mechanism, answers: Any, refusals: bool) -> Any:
    """Replace missing answers by None, if the question offers refusal and `refusals` is set.

    Raises InputError if `refusals` is set but the question offers no refusal. Raises AnswerError, with the
    row, for a blank if the question offers refusal but `refusals` is not set.
    """
    if refusals and not mechanism.refusal:
        raise InputError.say("core.no_refusal", question=mechanism.field)
    answers = arrays.without_mask(answers)
    if not mechanism.refusal or (isinstance(answers, np.ndarray) and answers.dtype.kind in "biuSU"):
        return answers
    listed = answers.tolist() if isinstance(answers, np.ndarray) else list(answers)
    blank = [arrays.is_missing(answer) for answer in listed]
    if not refusals and any(blank):
        raise AnswerError.say(
            "core.row", mechanism.field, row=blank.index(True) + 1, problem=say("core.blank")
        )
    if isinstance(answers, np.ndarray) and not any(blank):
        return answers
    return [None if missing else answer for answer, missing in zip(listed, blank)]


def quantise_many(mechanism: Mechanism, answers: Any) -> Quantised:
    """Return the integers of many answers. Raises AnswerError, with the row, for wrong or missing answers.

    answers: an array of numbers, of booleans for a yes/no, of labels or of
    numbered choices; for a record {field: array, …, response: array}. Anything else is read as a sequence
    of single answers.
    """
    if isinstance(answers, dict):
        # Squared lengths on the fine grid of a small norm do not fit in 64 bits: these go one by one.
        grid = mechanism.grid if isinstance(mechanism, GaussianRecord) else 1
        is_fine = len(answers) * grid**2 >= 1 << 62
        if isinstance(mechanism, (GaussianRecord, GaussianStatistics, SampledProducts)) and not is_fine:
            return _records(mechanism, answers)
        columns = [arrays.without_mask(column) for column in in_rows(mechanism.field, answers).values()]
        columns = [column.tolist() if hasattr(column, "tolist") else column for column in columns]
        for name, column in zip(answers, columns):
            if len(column) != len(columns[0]):
                raise AnswerError.say("core.one_column", f"{mechanism.field}.{name}")
        answers = [dict(zip(answers, values)) for values in zip(*columns, strict=True)]
    answers = arrays.without_mask(in_rows(mechanism.field, answers))
    if isinstance(answers, np.ndarray) and answers.ndim == 1:
        if isinstance(mechanism, ChoiceMechanism):
            return _choices(mechanism, answers)
        if answers.dtype.kind in "iuf" and isinstance(mechanism, (NumberMechanism, RefusableNumber)):
            place = arrays.positions(arrays.numbers(answers, mechanism.field), mechanism.bounds)
            indices = np.minimum((place * mechanism.levels + 0.5).astype(np.int64), mechanism.levels)
            return np.column_stack([indices, np.zeros_like(indices)]) if mechanism.refusal else indices
    return _one_by_one(mechanism, answers.tolist() if hasattr(answers, "tolist") else answers)


def _one_by_one(mechanism: Mechanism, answers: Sequence[Any]) -> list[Any]:
    quantised = []
    for row, answer in enumerate(answers, 1):
        try:
            quantised.append(mechanism.quantise(answer))
        except AnswerError as error:
            raise AnswerError.say("core.row", error.field, row=row, problem=error.problem) from None
    return quantised


def count_clipped(mechanism: Any, answers: Any) -> int:
    """Return how many valid answers are beyond the bounds or norm of a mechanism (or a question)."""
    if isinstance(answers, dict):
        beyond, squares = [], np.zeros(1)
        for field in (*mechanism.features, mechanism.response):
            if field.bounds is not None:
                values = arrays.numbers(answers[field.id], field.id)
                low, high = field.bounds
                beyond.append((values < float(low)) | (values > float(high)))
                if field is not mechanism.response:
                    squares = squares + np.square(2 * arrays.positions(values, field.bounds) - 1)
        if mechanism.norm is not None:
            beyond.append(squares > largest_square(mechanism.norm))
        return int(np.any(beyond, axis=0).sum())
    bounds = getattr(mechanism, "bounds", None)
    if bounds is not None and isinstance(answers, np.ndarray) and answers.dtype.kind in "iuf":
        return int(((answers < float(bounds[0])) | (answers > float(bounds[1]))).sum())
    return sum([is_clipped(mechanism, answer) for answer in answers])


def _choices(mechanism: ChoiceMechanism, answers: NDArray[Any]) -> arrays.Integers | list[int]:
    """Return the choices' indices. Each distinct label is looked up once."""
    if mechanism.boolean and answers.dtype == np.bool_:
        return answers.astype(np.int64)
    if mechanism.numbered and answers.dtype.kind in "iu":
        if not answers.size or (answers.min() >= 0 and answers.max() < mechanism.choices):
            return answers.astype(np.int64)
    elif answers.dtype.kind == "U":
        labels, where = np.unique(answers, return_inverse=True)
        with contextlib.suppress(AnswerError):
            return np.asarray([mechanism.quantise(label) for label in labels.tolist()], np.int64)[where]
    # Slower, but its error names the row.
    return _one_by_one(mechanism, answers.tolist())


def _records(
    mechanism: GaussianRecord | GaussianStatistics | SampledProducts, columns: dict[str, Any]
) -> arrays.Integers:
    """Return the integers of every record of {field: column}, as the mechanism's `quantise` does."""
    fields = [*mechanism.features, mechanism.response]
    for field in fields:
        if field.id not in columns:
            raise AnswerError.say("core.missing", f"{mechanism.field}.{field.id}")
    if len(columns) != len(fields):
        raise AnswerError.say("core.unasked_field", mechanism.field)
    unit, weight = mechanism.units
    *features, response = [
        _field(mechanism, field, columns[field.id], weight if field is mechanism.response else unit)
        for field in fields
    ]
    for field, column in zip(fields, [*features, response]):
        if column.ndim != 1 or len(column) != len(response):
            raise AnswerError.say("core.one_column", f"{mechanism.field}.{field.id}")
    if isinstance(mechanism, SampledProducts):
        entries = [np.full(len(response), UNIT)]
        for codes, column in zip(mechanism.codes, features):
            entries.append(UNIT * np.asarray(codes, np.int64)[column] if codes else column)
        return np.column_stack([*entries, response])
    vectors = arrays.clip_norms(np.column_stack(features), mechanism.radius)
    if isinstance(mechanism, GaussianStatistics):
        vectors = np.column_stack([np.full(len(response), weight), vectors])
    elif mechanism.binary:
        response = np.where(response > 0, 1, 0)
    return np.column_stack([vectors, response])


def _field(mechanism: RecordMechanism, field: Field, column: Any, size: int) -> arrays.Integers:
    """Return one field's column in units of 1/size, or as levels."""
    name = f"{mechanism.field}.{field.id}"
    if field.bounds is not None:
        values = arrays.numbers(in_rows(name, column), name)
        if field.cuts:
            return np.searchsorted(mechanism.cuts[field.id], values, side="right")
        return arrays.signed(values, field.bounds, size)
    listed = arrays.without_mask(in_rows(name, column))
    answers = np.asarray(listed)
    if not field.choices:
        if answers.dtype.kind != "b":
            raise AnswerError.say("core.booleans", name)
        return np.where(answers, size, -size)
    labels, where = np.unique(answers.astype(str), return_inverse=True)
    places = np.asarray([mechanism.places[field.id].of(label) for label in labels.tolist()], np.int64)[where]
    wrong = [place < 0 or not isinstance(label, str) for place, label in zip(places, listed)]
    if any(wrong):
        problem = say("core.one_of_choices", choices=len(field.choices))
        raise AnswerError.say("core.row", name, row=wrong.index(True) + 1, problem=problem)
    return places
