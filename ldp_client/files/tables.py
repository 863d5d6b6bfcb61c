"""A data holder's table in a file: CSV with a header, or Parquet. It is read in parts, in bounded memory.

Columns are named like the study's fields, or `question.field` if there are several table questions. Errors
of values name the row, counted from 1 below the header, and the column, never a value.
"""

import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ldp_client.documents.errors import InputError, MissingExtraError
from ldp_client.documents.question import Question
from ldp_client.documents.study import Study
from ldp_client.files.answers import NO_VALUE, check_header, csv_rows, refuse_two_readings
from ldp_client.files.disk import refuse_workbook
from ldp_client.files.marks import TwoReadings

Part = dict[str, Any]


ROWS = 8192
# Characters with which a spreadsheet's formula may begin.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def no_formula(text: str) -> str:
    """Return the text, quoted if a spreadsheet would compute it as a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def table_answers(study: Study, path: str) -> "dict[str, TableFile]":
    """Return {question id: its table in the file}, as answers. Raises InputError for other columns."""
    names = {question.id: _columns_of(study, question) for question in study.questions}
    refuse_workbook(path)
    file: File = ParquetFile(path) if path.lower().endswith((".parquet", ".pq")) else CsvFile(path)
    expected = [column for columns in names.values() for column in columns.values()]
    check_header(file.name, file.header(), expected)
    return {name: TableFile(file, columns) for name, columns in names.items()}


class TableFile:
    """One question's columns of a file. columns: {field id: column name}."""

    def __init__(self, file: "File", columns: dict[str, str]) -> None:
        self.file = file
        self.columns = columns

    def chunks(self) -> Iterator[Part]:
        """Yield {field id: column} for some rows at a time, in order. Raises InputError."""
        for part in self.file.parts(list(self.columns.values())):
            yield {field: part[column] for field, column in self.columns.items()}


class CsvFile:
    """Comma-separated UTF-8 text with a header."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = os.path.basename(path)

    def header(self) -> list[str]:
        """Return the column names."""
        return next(csv_rows(self.path))[1]

    def parts(self, columns: list[str]) -> Iterator[Part]:
        """Yield {column: numbers} for some rows at a time. Other text is kept; a missing value is None.

        Raises InputError. For a column of ambiguous numbers it does so after the last rows.
        """
        rows = csv_rows(self.path)
        _, header = next(rows)
        places = {column: header.index(column) for column in columns}
        readings = {column: TwoReadings(NO_VALUE) for column in columns}
        while chunk := [row for _, row in islice(rows, ROWS)]:
            texts = {column: [row[place] for row in chunk] for column, place in places.items()}
            for column in columns:
                readings[column].look_at(texts[column])
            yield {column: [_number(text) for text in texts[column]] for column in columns}
        refuse_two_readings(self.name, readings)


class ParquetFile:
    """A Parquet file; needs pyarrow. Raises MissingExtraError without it."""

    def __init__(self, path: str) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ModuleNotFoundError:
            raise MissingExtraError("tables", "pyarrow") from None
        self.name = os.path.basename(path)
        try:
            self._file = pyarrow.parquet.ParquetFile(path)
        except pyarrow.ArrowInvalid:
            raise InputError.say("files.not_parquet", path=path) from None
        except OSError as error:
            if error.strerror is None:
                raise InputError.say("files.not_parquet", path=path) from None
            raise InputError.say("files.cannot_read", path=path, reason=error.strerror) from None

    def header(self) -> list[str]:
        """Return the column names."""
        return list(self._file.schema_arrow.names)

    def parts(self, columns: list[str]) -> Iterator[Part]:
        """Yield {column: NumPy array of floats} for some rows at a time; a missing value is NaN."""
        import pyarrow

        kinds = pyarrow.types
        for column in columns:
            kind = self._file.schema_arrow.field(column).type
            if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind)):
                raise InputError.say("files.table_numbers", file=self.name, column=column, kind=kind)
        try:
            for batch in self._file.iter_batches(ROWS, columns=columns):
                floats = {name: batch[name].cast(pyarrow.float64(), safe=False) for name in columns}
                yield {name: floats[name].to_numpy(zero_copy_only=False) for name in columns}
        except (pyarrow.ArrowInvalid, OSError):
            raise InputError.say("files.table_damaged", file=self.name) from None


File = CsvFile | ParquetFile


def _columns_of(study: Study, question: Question) -> dict[str, str]:
    prefix = f"{question.id}." if len(study.questions) > 1 else ""
    return {field.id: prefix + field.id for field in question.fields}


def _number(text: str) -> float | str | None:
    """Return a number, None for a missing value, or other text, which no mechanism takes."""
    try:
        # Python reads 1_000 as a number. In a table it is a mistake.
        return text if "_" in text else float(text)
    except ValueError:
        return None if text.strip().lower() in NO_VALUE else text
