"""Quantise many answers on the study's grid as `quantise` does one. Arrays need no loop over answers."""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_client.columns.arrays import clip_norms, positions, refuse_missing, signed, without_mask
from ldp_client.columns.clipping import ROUNDING, is_clipped
from ldp_client.core.quantise import UNIT, as_float
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.documents.question import Field
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.record import RecordMechanism
from ldp_client.mechanisms.sampled_products import SampledProducts
from ldp_client.mechanisms.tables.rows import NO_ROWS, is_missing
from ldp_client.words.text import say

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Quantised = Sequence[Any] | Integers


FLAGS = (bool, np.bool_)


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
    answers = without_mask(answers)
    if not mechanism.refusal or (isinstance(answers, np.ndarray) and answers.dtype.kind in "biuSU"):
        return answers
    listed = answers.tolist() if isinstance(answers, np.ndarray) else list(answers)
    blank = [is_missing(answer) for answer in listed]
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
    answers = in_rows(mechanism.field, answers)
    if isinstance(answers, dict):
        if isinstance(mechanism, GaussianStatistics):
            return _clipped_records(mechanism, answers)
        if isinstance(mechanism, SampledProducts):
            return _entries(mechanism, _records(mechanism, answers, UNIT))
        answers = _each_record(mechanism, answers)
    answers = without_mask(answers)
    if isinstance(answers, np.ndarray) and answers.ndim == 1:
        if isinstance(mechanism, ChoiceMechanism):
            return _choices(mechanism, answers)
        if answers.dtype.kind in "iuf" and hasattr(mechanism, "bounds") and hasattr(mechanism, "levels"):
            refuse_missing(answers, mechanism.field)
            indices = _indices(answers, mechanism.bounds, mechanism.levels)
            return np.column_stack([indices, np.zeros_like(indices)]) if mechanism.refusal else indices
    return _one_by_one(mechanism, answers.tolist() if isinstance(answers, np.ndarray) else answers)


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
        return int(_are_clipped(mechanism, answers).sum())
    bounds = getattr(mechanism, "bounds", None)
    if bounds is not None and isinstance(answers, np.ndarray) and answers.dtype.kind in "iuf":
        return int(((answers < float(bounds[0])) | (answers > float(bounds[1]))).sum())
    return sum([is_clipped(mechanism, answer) for answer in answers])


def _are_clipped(mechanism: Any, columns: dict[str, Any]) -> NDArray[np.bool_]:
    """Return which records of {field: column} are beyond the bounds or norm."""
    numbers = {
        field.id: (_floats(columns[field.id], field.id), _bounds(field))
        for field in (*mechanism.features, mechanism.response)
        if field.bounds is not None
    }
    beyond = [(column < float(low)) | (column > float(high)) for column, (low, high) in numbers.values()]
    clipped: NDArray[np.bool_] = np.any(beyond, axis=0)
    if mechanism.norm is not None:
        scaled = [2 * positions(*numbers[field.id]) - 1 for field in mechanism.features]
        clipped |= np.square(scaled).sum(axis=0) > float(mechanism.norm) ** 2 * (1 + ROUNDING)
    return clipped


def _floats(column: Any, name: str) -> Floats:
    numbers = np.asarray(column)
    if numbers.dtype.kind == "O":
        # Object arrays may hold integers beyond all floats.
        numbers = np.asarray([as_float(value, name) for value in numbers.tolist()])
    return numbers.astype(np.float64)


def _each_record(mechanism: Mechanism, answers: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records of {field: column}. Lists keep their values' types: True is not a number."""
    columns = [
        np.asarray(column).tolist() if hasattr(column, "dtype") else list(column)
        for column in map(without_mask, answers.values())
    ]
    if len({len(column) for column in columns}) > 1:
        raise AnswerError.say("core.column_lengths", mechanism.field)
    return [dict(zip(answers, values)) for values in zip(*columns)]


def _choices(mechanism: ChoiceMechanism, answers: NDArray[Any]) -> Integers | list[int]:
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


def _indices(values: NDArray[Any], bounds: tuple[Rational, Rational], levels: int) -> Integers:
    return np.minimum((positions(values, bounds) * levels + 0.5).astype(np.int64), levels)


def _clipped_records(mechanism: GaussianStatistics, answers: dict[str, Any]) -> Integers:
    """Return v of every record, as GaussianStatistics.quantise does."""
    vectors = _records(mechanism, answers, mechanism.weight)
    vectors[:, 1:-1] = clip_norms(vectors[:, 1:-1], mechanism.radius)
    return vectors


def _records(mechanism: RecordMechanism, answers: dict[str, Any], weight: int) -> Integers:
    """Return (constant, features, response) of every record: features in units, the others × weight."""
    columns = {name: np.asarray(without_mask(answers[name])) for name in answers}
    _check_columns(mechanism, columns)
    for field in (*mechanism.features, mechanism.response):
        # Arrays of booleans are rejected above. In a list of numbers a boolean would count as 0 or 1.
        if field.bounds is not None and any(
            [isinstance(value, FLAGS) for value in _listed(answers[field.id])]
        ):
            raise AnswerError.say("core.numbers", f"{mechanism.field}.{field.id}")
    features = [_units(mechanism, columns[field.id], field) for field in mechanism.features]
    last = _signed(columns[mechanism.response.id], mechanism.response, weight)
    return np.column_stack([np.full(len(last), weight), *features, last])


def _entries(mechanism: SampledProducts, rows: Integers) -> Integers:
    """Return every record's entries: a field with levels becomes its level's codes, others are unchanged."""
    if not any(mechanism.codes):
        return rows
    found = [rows[:, :1]]
    for codes, column in zip(mechanism.codes, rows[:, 1:-1].T):
        found.append(UNIT * np.asarray(codes, np.int64)[column] if codes else column[:, None])
    return np.hstack([*found, rows[:, -1:]])


def _units(mechanism: RecordMechanism, column: NDArray[Any], field: Field) -> Integers:
    """Return a feature's column as quantise_fields does."""
    if field.cuts:
        return np.searchsorted(mechanism.cuts[field.id], column.astype(np.float64), side="right")
    if not field.choices:
        return _signed(column, field, UNIT)
    labels, where = np.unique(column.astype(str), return_inverse=True)
    places = np.asarray([mechanism.places[field.id].of(label) for label in labels.tolist()], np.int64)[where]
    if places.size and places.min() < 0:
        problem = say("core.one_of_choices", choices=len(field.choices))
        row = int(places.argmin()) + 1
        raise AnswerError.say("core.row", f"{mechanism.field}.{field.id}", row=row, problem=problem)
    return places


def _listed(column: Any) -> Any:
    """Return the values of a list, whose types may differ; () for an array."""
    return () if hasattr(column, "dtype") else column


def _signed(column: NDArray[Any], field: Field, size: int) -> Integers:
    if field.bounds is None:
        return np.where(column, size, -size)
    return signed(column, field.bounds, size)


def _bounds(field: Any) -> tuple[Rational, Rational]:
    bounds: tuple[Rational, Rational] = field.bounds
    return bounds


def _check_columns(mechanism: RecordMechanism, columns: dict[str, NDArray[Any]]) -> None:
    fields = [*mechanism.features, mechanism.response]
    for field in fields:
        name = f"{mechanism.field}.{field.id}"
        if field.id not in columns:
            raise AnswerError.say("core.missing", name)
        column = columns[field.id]
        if column.ndim != 1 or len(column) != len(columns[fields[0].id]):
            raise AnswerError.say("core.one_column", name)
        if field.choices:
            _check_labels(column, field, name)
            continue
        if column.dtype.kind not in ("b" if field.bounds is None else "iuf"):
            raise AnswerError.say("core.booleans" if field.bounds is None else "core.numbers", name)
        refuse_missing(column, name)
    if len(columns) != len(fields):
        raise AnswerError.say("core.unasked_field", mechanism.field)


def _check_labels(column: NDArray[Any], field: Field, name: str) -> None:
    """Require text, also in a column of objects. Raises AnswerError with the first row without text."""
    wrong = [] if column.dtype.kind == "U" else [not isinstance(value, str) for value in column.tolist()]
    if any(wrong):
        problem = say("core.one_of_choices", choices=len(field.choices))
        raise AnswerError.say("core.row", name, row=wrong.index(True) + 1, problem=problem)
