"""From a table's columns to integer records: every value checked, scaled to its bounds, clipped to the norm.

A table is {field id: sequence of numbers} (lists, NumPy arrays), or an object whose `chunks()` yields
such parts in order. Errors name the row, counted from 1, and the column, never a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from math import isinf
from typing import TYPE_CHECKING, Any, NoReturn

from ldp_client.core.quantise import UNIT, as_float, clip_norm, signed_units
from ldp_client.documents.errors import AnswerError
from ldp_client.documents.question import Field
from ldp_client.words.text import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]


# What can be walked through, but holds no answers in rows: a set has lost their order.
NO_ROWS = (str, bytes, bytearray, memoryview, set, frozenset)
# Fewer rows are not worth loading NumPy for.
MANY = 256
# Rows at once: bounds the working memory.
PART = 1 << 16


class Columns:
    """The columns that a question asks for: features, then the response; `norm` in units of 1/UNIT."""

    def __init__(self, question: str, fields: Sequence[Field], norm: int) -> None:
        self.question = question
        self.fields = fields
        self.norm = norm

    def parts(self, table: Any) -> Iterator[tuple[int, list[Any]]]:
        """(rows before, columns in order) of each part of a table. Raises AnswerError for other columns."""
        parts = table.chunks() if hasattr(table, "chunks") else [table]
        before = 0
        for part in parts:
            columns = self._ordered(part)
            rows = len(columns[0])
            for start in range(0, rows, PART):
                whole = rows <= PART
                yield before, columns if whole else [column[start : start + PART] for column in columns]
                before += min(PART, rows - start)
        if before == 0:
            raise AnswerError.say("core.table_rows", self.question)

    def _ordered(self, part: Any) -> list[Any]:
        if not hasattr(part, "keys") or not hasattr(part, "__getitem__"):
            raise AnswerError.say("core.table", self.question)
        given, expected = list(part.keys()), [field.id for field in self.fields]
        for name in expected:
            if name not in given:
                raise AnswerError.say("core.table_no_column", f"{self.question}.{name}")
        for name in given:
            if name not in expected:
                raise AnswerError.say("core.table_unasked", self.question, column=str(name)[:64])
        columns = [_without_mask(part[name]) for name in expected]
        for name, column in zip(expected, columns):
            self._check_column(name, column, columns[0])
        return columns

    def _check_column(self, name: str, column: Any, first: Any) -> None:
        kind = getattr(getattr(column, "dtype", None), "kind", "O")
        plain = hasattr(column, "__len__") and not isinstance(column, (*NO_ROWS, dict))
        if not plain or kind not in "iufO" or getattr(column, "ndim", 1) != 1:
            raise AnswerError.say("core.table_column", f"{self.question}.{name}")
        if len(column) != len(first):
            raise AnswerError.say("core.table_lengths", f"{self.question}.{name}")

    def records(self, columns: list[Any], before: int) -> Iterator[list[int]]:
        """(unit, x, y) of each row in units of 1/UNIT. Raises AnswerError."""
        for row, values in zip(count(before + 1), zip(*columns)):
            scaled = [self._scaled(field, value, row) for field, value in zip(self.fields, values)]
            yield [UNIT, *clip_norm(scaled[:-1], self.norm), scaled[-1]]

    def _scaled(self, field: Field, value: Any, row: int) -> int:
        assert field.bounds is not None
        try:
            number = as_float(value, field.id)
        except AnswerError as error:
            self._refuse(field, row, say("core.missing") if is_missing(value) else error.problem)
        if isinf(number):
            # A whole one beyond all floats.
            self._refuse(field, row, say("core.number"))
        return signed_units(number, field.bounds, UNIT, field.id)

    def _refuse(self, field: Field, row: int, problem: str) -> NoReturn:
        raise AnswerError.say("core.row", f"{self.question}.{field.id}", row=row, problem=problem) from None

    def array(self, columns: list[Any], before: int) -> Integers:
        """`records` of numeric NumPy columns as one array: the same integers. Raises AnswerError."""
        import numpy as np

        from ldp_client.columns.arrays import clip_norms, refuse_missing, signed

        scaled = []
        for field, values in zip(self.fields, columns):
            refuse_missing(values, f"{self.question}.{field.id}", before)
            assert field.bounds is not None
            scaled.append(signed(values, field.bounds, UNIT))
        features = clip_norms(np.column_stack(scaled[:-1]), self.norm)
        return np.column_stack([np.full(len(features), UNIT), features, scaled[-1]])


def is_missing(value: Any) -> bool:
    """Whether it is None, NaN, or what data frames have for either."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):
        # An array, or a NaN that signals: it is here, and no answer.
        return False


def _without_mask(column: Any) -> Any:
    if not hasattr(column, "mask"):
        return column
    from ldp_client.columns.arrays import without_mask

    return without_mask(column)


def as_arrays(columns: list[Any]) -> list[Any] | None:
    """The columns as NumPy arrays of numbers; None where that would be slower, or cannot be."""
    if len(columns[0]) < MANY:
        return None
    try:
        import numpy as np
    except ModuleNotFoundError:
        return None
    arrays = [column if isinstance(column, np.ndarray) else _from_list(column) for column in columns]
    good = all([array is not None and array.dtype.kind in "iuf" and array.ndim == 1 for array in arrays])
    return arrays if good else None


def _from_list(column: Any) -> Any:
    """An array of a sequence of plain numbers; None for anything else."""
    import numpy as np

    if not hasattr(column, "dtype") and not {type(value) for value in column} <= {float, int}:
        return None
    try:
        return np.asarray(column, dtype=None if hasattr(column, "dtype") else float)
    except (TypeError, ValueError, OverflowError):
        return None
