"""From a table's columns to integer records: every value checked, scaled to its bounds, clipped to the norm.

A table is {field id: sequence of numbers} (lists, NumPy arrays), or an object whose `chunks()` yields
such parts in order. Errors name the row, counted from 1, and the column, never a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ldp_client.core.quantise import UNIT
from ldp_client.documents.errors import AnswerError, MissingExtraError
from ldp_client.documents.question import Field

if TYPE_CHECKING:
    from ldp_client.columns.arrays import Integers

# Sequences that hold no answers in rows: a set has lost their order.
NO_ROWS = (str, bytes, bytearray, memoryview, set, frozenset)
# Rows at once: bounds the working memory.
PART = 1 << 16


def records_of(question: str, fields: Sequence[Field], norm: int, table: Any) -> Iterator[Integers]:
    """Yield the records (unit, x, y) of a table in units of 1/UNIT, as arrays, some rows at a time.

    Args:
        question: the question's id.
        fields: features, then the response.
        norm: the norm that features are clipped to, in units of 1/UNIT.
        table: the table.

    Raises:
        AnswerError: a column is missing or unknown, a value is wrong, or there are no rows.
        MissingExtraError: NumPy is not installed.
    """
    try:
        import numpy as np

        from ldp_client.columns.arrays import clip_norms, numbers, signed
    except ModuleNotFoundError:
        raise MissingExtraError("tables", "numpy") from None
    before = 0
    for part in table.chunks() if hasattr(table, "chunks") else [table]:
        columns = _ordered(question, [field.id for field in fields], part)
        for start in range(0, len(columns[0]), PART):
            scaled = []
            for field, column in zip(fields, columns):
                assert field.bounds is not None
                values = numbers(column[start : start + PART], f"{question}.{field.id}", before)
                scaled.append(signed(values, field.bounds, UNIT))
            features = clip_norms(np.column_stack(scaled[:-1]), norm)
            yield np.column_stack([np.full(len(features), UNIT), features, scaled[-1]])
            before += len(features)
    if before == 0:
        raise AnswerError.say("core.table_rows", question)


def _ordered(question: str, expected: list[str], part: Any) -> list[Any]:
    """Return the expected columns of a part in order. Raises AnswerError for other columns."""
    if not hasattr(part, "keys") or not hasattr(part, "__getitem__"):
        raise AnswerError.say("core.table", question)
    given = list(part.keys())
    for name in expected:
        if name not in given:
            raise AnswerError.say("core.table_no_column", f"{question}.{name}")
    for name in given:
        if name not in expected:
            raise AnswerError.say("core.table_unasked", question, column=str(name)[:64])
    columns = [part[name] for name in expected]
    for name, column in zip(expected, columns):
        is_column = hasattr(column, "__len__") and not isinstance(column, (*NO_ROWS, dict))
        if not is_column or getattr(column, "ndim", 1) != 1:
            raise AnswerError.say("core.table_column", f"{question}.{name}")
        if len(column) != len(columns[0]):
            raise AnswerError.say("core.table_lengths", f"{question}.{name}")
    return columns
