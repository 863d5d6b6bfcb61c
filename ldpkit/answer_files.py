"""Answer files: a table of people's answers, and a data holder's table in CSV.

People's answers are a row for each person, with a column for each question and public field. A record has a
column for each of its fields, `question.field`. A point is the decimal point. A holder's table has a column
for each field of the study, or `question.field` if there are several table questions. It is read in parts, in
bounded memory. Errors name the row and the field, never the value.
"""

import csv
import os
import unicodedata
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.documents.question import Question
from ldp_client.documents.study import Study
from schemas.disk import refuse_workbook
from summaries.people import YES_OR_NO

if TYPE_CHECKING:
    import pandas as pd

    from summaries.people.codebook import Codebook

# Rows of a table that are read at once.
ROWS = 8192
# How many ignored columns are named.
MOST_NAMED = 10
# Texts for a missing value in files.
NO_VALUE = ("", "na", "n/a", "nan", "null", "none")


def read_answers(
    study: Study,
    frame: "pd.DataFrame",
    name: str,
    refusals: bool = False,
    codebook: "Codebook | None" = None,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number, {question id: answer or None}) for each person of a table.

    Args:
        study: the study; other columns of the table are ignored, with a note.
        frame: the table, as `summaries.people.files.read_frame` reads a file.
        name: the table's name, for errors.
        refusals: treat a blank cell as a refusal if the question offers it. None is a refusal.
        codebook: what columns mean.
        note: receives one line with the columns that are ignored.

    Raises:
        InputError: an answer is wrong, or looks odd; the error names the row, never the value.
    """
    from summaries.people.codebook import stated

    # 1. Refuse what the columns may not mean.
    expected, columns = all_columns(study), [str(column) for column in frame.columns]
    for column in expected:
        if column not in columns:
            problem = f"column {column} is missing; the header must have {', '.join(expected)}"
            raise InputError(f"{name}: {problem}", code="files.column_missing")
    if ignored := [column for column in columns if column not in expected]:
        more = f" and {len(ignored) - MOST_NAMED:,} others" if len(ignored) > MOST_NAMED else ""
        note(f"ignored columns of {name}: {', '.join(ignored[:MOST_NAMED])}{more}")
    frame, answered = frame.set_axis(range(1, len(frame) + 1), axis=0), _answered(study)
    bounds = {
        name: (float(each.bounds[0]), float(each.bounds[1])) for name, each in answered.items() if each.bounds
    }
    cells = stated(frame, name, codebook, [*bounds, *(codebook or {})], bounds)
    # An accent may be written in two ways.
    labels = {
        column: {unicodedata.normalize("NFC", str(label)): str(label) for label in each.choices}
        for column, each in answered.items()
    }
    # 2. Turn each row into answers.
    is_blank = cells[expected].isna().to_numpy()
    for place, row in enumerate(zip(*[frame[column] for column in expected])):
        texts = {
            column: "" if is_blank[place, at] else _text(cell, labels.get(column, {}))
            for at, (column, cell) in enumerate(zip(expected, row))
        }
        number = place + 1
        try:
            answers = answers_from_text(study, texts)
        except AnswerError as error:
            raise line_error(name, number, error) from None
        for question in study.questions:
            if question.refusal and not refusals and answers[question.id] is None:
                raise line_error(name, number, AnswerError.say("core.blank", question.id))
        yield number, answers


def _answered(study: Study) -> dict[str, Any]:
    """Return {column: the question, field of a record or public field that it answers}."""
    fields: dict[str, Any] = {}
    for question in study.questions:
        parts = [question] if question.response is None else question.fields
        fields |= dict(zip(columns_of(question), parts))
    return fields | {field.id: field for field in study.public}


def _text(cell: Any, labels: dict[str, str]) -> str:
    """Return a cell as text: True as true, 7.0 as 7, and a label as the study writes it."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = "" if cell is None else str(cell)
    return labels.get(unicodedata.normalize("NFC", text), text)


def line_error(path: str, row: int, error: AnswerError) -> InputError:
    """Return the error for an answer in a row of a file."""
    where = f"{os.path.basename(path)}, row {row}"
    headers = ". If the file has several header rows, keep one" if row == 1 else ""
    return InputError(f"{where}: {error.field}: {error.problem}{headers}", code="answer.line_invalid")


def csv_rows(path: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) of the header and each row, without empty lines. Raises InputError."""
    refuse_workbook(path)
    name = os.path.basename(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            rows = filter(None, reader)
            header = [cell.strip() for cell in next(rows, [])]
            if not header:
                raise InputError(
                    f"{name} is empty: write the names of the columns in its first line, then the rows",
                    code="files.no_header",
                )
            yield reader.line_num, header
            for cells in rows:
                if len(cells) != len(header):
                    raise InputError(
                        f"{name}, line {reader.line_num}: wrong number of columns", code="files.line_columns"
                    )
                yield reader.line_num, cells
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.cannot_read") from None
    except UnicodeError:
        raise InputError(f"{path} is not UTF-8 text: save the table as CSV", code="files.not_utf8") from None
    except csv.Error:
        raise InputError(f"{name}, line {reader.line_num}: not CSV", code="files.line_not_csv") from None


def all_columns(study: Study) -> list[str]:
    """Return the columns that hold a person's answers and public values."""
    return list(_answered(study))


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
        raise AnswerError.say("core.blank", column)
    if yes_no:
        if word not in YES_OR_NO:
            raise AnswerError.say("core.yes_or_no", column)
        return YES_OR_NO[word]
    try:
        # Python reads 1_000 as a number. In a file it is a mistake.
        return float("" if "_" in word else word)
    except ValueError:
        raise AnswerError.say("core.number", column) from None


def table_answers(study: Study, path: str) -> "dict[str, CsvTable]":
    """Return {question id: its table in the file}, as answers. Raises InputError for other columns."""
    names = {}
    for question in study.questions:
        prefix = f"{question.id}." if len(study.questions) > 1 else ""
        names[question.id] = {field.id: prefix + field.id for field in question.fields}
    expected = [column for columns in names.values() for column in columns.values()]
    _, header = next(csv_rows(path))
    if sorted(header) != sorted(expected):
        name, listed = os.path.basename(path), ", ".join(expected)
        raise InputError(
            f"{name}: the header must have {listed}, each once, and nothing else", code="files.columns"
        )
    return {name: CsvTable(path, columns) for name, columns in names.items()}


class CsvTable:
    """One question's columns of a file. columns: {field id: column name}."""

    def __init__(self, path: str, columns: dict[str, str]) -> None:
        self.path = path
        self.columns = columns

    def chunks(self) -> Iterator[dict[str, list[float | str | None]]]:
        """Yield {field id: numbers} for some rows at a time, in order. A missing value is None.

        Text that is no number is kept: no mechanism takes it. Raises InputError.
        """
        rows = csv_rows(self.path)
        _, header = next(rows)
        indices = {field: header.index(column) for field, column in self.columns.items()}
        while chunk := [row for _, row in islice(rows, ROWS)]:
            yield {field: [_number(row[index]) for row in chunk] for field, index in indices.items()}


def _number(text: str) -> float | str | None:
    try:
        # Python reads 1_000 as a number. In a table it is a mistake.
        return text if "_" in text else float(text)
    except ValueError:
        return None if text.strip().lower() in NO_VALUE else text
