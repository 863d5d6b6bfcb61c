"""Answer files: people's answers in NDJSON or CSV, and a data holder's table in CSV or Parquet.

People's answers are an object or a row for each person, with questions and public fields. A record question
is an object in NDJSON. In CSV it is one column for each of its fields, `question.field`. A point is the
decimal point. A table has a column for each field of the study, or `question.field` if there are several
table questions. It is read in parts, in bounded memory. Errors name the row and the field, never the value.
"""

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, TextIO

from ldp_client.documents.canonical import parse_json
from ldp_client.documents.errors import AnswerError, DocumentError, InputError, MissingExtraError
from ldp_client.documents.question import Question
from ldp_client.documents.study import Study
from schemas.disk import refuse_workbook

# Rows of a table that are read at once.
ROWS = 8192
Part = dict[str, Any]
# Texts for a missing value in files.
NO_VALUE = ("", "na", "n/a", "nan", "null", "none")
MAX_LINE = 1 << 20
YES_OR_NO = {
    **dict.fromkeys(("yes", "true", "1", "1.0"), True),
    **dict.fromkeys(("no", "false", "0", "0.0"), False),
}


def read_answers(study: Study, path: str, refusals: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, {question id: answer or None}) for each person. Raises InputError.

    None is a refusal. refusals: treat a blank cell, or null, as a refusal if the question offers it.
    """
    refuse_workbook(path)
    read = _read_csv if path.lower().endswith(".csv") else _read_ndjson
    for number, answers in read(study, path):
        for question in study.questions:
            if question.refusal and not refusals and answers.get(question.id, "") is None:
                raise line_error(path, number, AnswerError.say("core.blank", question.id))
        yield number, answers


def line_error(path: str, line: int, error: AnswerError) -> InputError:
    """Return the error for an answer in a line of a file."""
    where = f"{os.path.basename(path)}, line {line}"
    return InputError(f"{where}: {error.field}: {error.problem}", code="answer.line_invalid")


@contextmanager
def reading(path: str) -> Iterator[TextIO]:
    """Open a file of UTF-8 text. Raises InputError if it cannot be read."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.cannot_read") from None
    except UnicodeError:
        raise InputError(f"{path} is not UTF-8 text", code="files.not_utf8") from None


def _read_ndjson(study: Study, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    known = [question.id for question in study.questions] + [field.id for field in study.public]
    name = os.path.basename(path)
    with reading(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                answers = parse_json(line, DocumentError, MAX_LINE)
            except DocumentError as error:
                raise InputError(
                    f"{name}, line {number}: {error.problem}", code="files.line_problem"
                ) from None
            if not isinstance(answers, dict):
                raise InputError(f"{name}, line {number}: must be an object", code="files.line_object")
            if set(answers) - set(known):
                # Do not repeat even the name: it may be a mistyped answer.
                where = f"{name}, line {number}"
                raise InputError(
                    f"{where}: must name only these questions: {', '.join(known)}", code="files.line_unknown"
                )
            yield number, answers


def _read_csv(study: Study, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    rows, name = csv_rows(path), os.path.basename(path)
    _, header = next(rows)
    check_header(name, header, all_columns(study))
    for number, row in rows:
        texts = dict(zip(header, row))
        try:
            yield number, answers_from_text(study, texts)
        except AnswerError as error:
            raise line_error(path, number, error) from None


def csv_rows(path: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) of the header and each row, without empty lines. Raises InputError.

    Blanks around the header's names do not count. With one column, an empty line before a row is a person's
    empty cell. Trailing empty lines are ignored.
    """
    name, width = os.path.basename(path), 0
    empty: list[int] = []
    with reading(path) as file:
        reader = csv.reader(file, strict=True)
        try:
            for cells in reader:
                if not cells:
                    empty.append(reader.line_num)
                    continue
                if width == 1:
                    yield from [(number, [""]) for number in empty]
                empty.clear()
                if not width:
                    width, cells = len(cells), [cell.strip() for cell in cells]
                if len(cells) != width:
                    raise InputError(
                        f"{name}, line {reader.line_num}: wrong number of columns", code="files.line_columns"
                    )
                yield reader.line_num, cells
        except csv.Error:
            raise InputError(f"{name}, line {reader.line_num}: not CSV", code="files.line_not_csv") from None
    if not width:
        raise InputError(
            f"{name} is empty: write the names of the columns in its first line, then the rows",
            code="files.no_header",
        )


def check_header(name: str, header: list[str], expected: list[str]) -> None:
    """Raise InputError unless the header of file `name` has exactly the expected columns, each once."""
    for column in expected:
        if column not in header:
            raise InputError(
                f"{name}: column {column} is missing; the header must have {', '.join(expected)}",
                code="files.column_missing",
            )
    for column in header:
        if column not in expected:
            raise InputError(
                f"{name}: column {column[:64]!r} is not in the study: leave it out",
                code="files.column_unknown",
            )
    for column in expected:
        if header.count(column) > 1:
            raise InputError(f"{name}: column {column} appears twice", code="files.column_twice")


def all_columns(study: Study) -> list[str]:
    """Return the columns that hold a person's answers and public values."""
    private = [column for question in study.questions for column in columns_of(question)]
    return [*private, *[field.id for field in study.public]]


def columns_of(question: Question) -> list[str]:
    """Return the columns that hold one question's answer: its id, or `question.field` for a record."""
    if question.response is None:
        return [question.id]
    return [f"{question.id}.{field.id}" for field in question.fields]


def answers_from_text(study: Study, texts: dict[str, str]) -> dict[str, Any]:
    """Return answers from {column: text}, without missing columns. Raises AnswerError."""
    answers: dict[str, Any] = {}
    for question in study.questions:
        if question.response is None:
            if question.id in texts:
                answers[question.id] = _plain_answer(question, texts[question.id])
            continue
        record = {
            field.id: texts[column]
            if field.choices
            else _field_answer(field.bounds is None, texts[column], column)
            for field, column in zip(question.fields, columns_of(question))
            if column in texts
        }
        if record:
            answers[question.id] = record
    for field in study.public:
        if field.id in texts:
            answers[field.id] = texts[field.id] if field.choices else texts[field.id].strip()
    return answers


def _plain_answer(question: Question, text: str) -> Any:
    word = text.strip().lower()
    # A blank that is also a label, in any case, is not a refusal: it may be a misspelt label.
    labels = [str(label).strip().lower() for label in question.choices]
    if question.refusal and word in NO_VALUE and word not in labels:
        return None
    if question.ask == "choice":
        return text
    return _field_answer(question.ask == "yes_no", text, question.id)


def _field_answer(yes_no: bool, text: str, column: str) -> float | bool:
    word = text.strip().lower()
    if word in NO_VALUE:
        raise AnswerError.say("core.missing", column)
    if yes_no:
        if word not in YES_OR_NO:
            raise AnswerError.say("core.yes_or_no", column)
        return YES_OR_NO[word]
    try:
        # Python reads 1_000 as a number. In a file it is a mistake.
        return float("" if "_" in word else word)
    except ValueError:
        raise AnswerError.say("core.number", column) from None


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
        """Yield {column: numbers} for some rows at a time. Other text is kept; a missing value is None."""
        rows = csv_rows(self.path)
        _, header = next(rows)
        places = {column: header.index(column) for column in columns}
        while chunk := [row for _, row in islice(rows, ROWS)]:
            texts = {column: [row[place] for row in chunk] for column, place in places.items()}
            yield {column: [_number(text) for text in texts[column]] for column in columns}


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
            raise InputError(f"{path} is not a Parquet file", code="files.not_parquet") from None
        except OSError as error:
            if error.strerror is None:
                raise InputError(f"{path} is not a Parquet file", code="files.not_parquet") from None
            raise InputError(f"cannot read {path}: {error.strerror}", code="files.cannot_read") from None

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
                raise InputError(
                    f"{self.name}: column {column} must hold numbers, not {kind}", code="files.table_numbers"
                )
        try:
            for batch in self._file.iter_batches(ROWS, columns=columns):
                floats = {name: batch[name].cast(pyarrow.float64(), safe=False) for name in columns}
                yield {name: floats[name].to_numpy(zero_copy_only=False) for name in columns}
        except (pyarrow.ArrowInvalid, OSError):
            raise InputError(f"{self.name} is damaged", code="files.table_damaged") from None


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
