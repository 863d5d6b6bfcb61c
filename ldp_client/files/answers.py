"""Answer files: NDJSON, one object per person, or CSV with a header, with questions and public fields.

A record question is an object in NDJSON. In CSV it is one column for each of its fields,
`question.field`. Errors name the row and the field, never the value.
"""

import csv
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from ldp_client.documents.canonical import parse_json
from ldp_client.documents.errors import AnswerError, DocumentError, InputError
from ldp_client.documents.question import Question
from ldp_client.documents.study import Study
from ldp_client.files.disk import refuse_workbook
from ldp_client.files.marks import TwoReadings
from ldp_client.words.text import say

# Texts for a missing value in files.
NO_VALUE = ("", "na", "n/a", "nan", "null", "none")
MAX_LINE = 1 << 20
# Spaces of any width and apostrophes separate thousands in some countries.
MARKED_THOUSANDS = re.compile(r"[+-]?\d{1,3}([\s'\u2019\u02bc_]\d{3})+([.,]\d+)?")
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
    where = say("files.line", file=os.path.basename(path), line=line)
    return InputError(f"{where}: {error.field}: {error.problem}", code="answer.line_invalid")


@contextmanager
def reading(path: str) -> Iterator[TextIO]:
    """Open a file of UTF-8 text. Raises InputError if it cannot be read."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            yield file
    except OSError as error:
        raise InputError.say("files.cannot_read", path=path, reason=error.strerror) from None
    except UnicodeError:
        raise InputError.say("files.not_utf8", path=path) from None


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
                raise InputError.say(
                    "files.line_problem", file=name, line=number, problem=error.problem
                ) from None
            if not isinstance(answers, dict):
                raise InputError.say("files.line_object", file=name, line=number)
            if set(answers) - set(known):
                # Do not repeat even the name: it may be a mistyped answer.
                where = say("files.line", file=name, line=number)
                raise InputError.say("files.line_unknown", where=where, known=", ".join(known))
            yield number, answers


def _read_csv(study: Study, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    rows, name = csv_rows(path), os.path.basename(path)
    _, header = next(rows)
    check_header(name, header, all_columns(study))
    numbers = {column: TwoReadings(NO_VALUE) for column in _number_columns(study)}
    for number, row in rows:
        texts = dict(zip(header, row))
        for column in numbers:
            numbers[column].look_at([texts[column]])
        try:
            yield number, answers_from_text(study, texts)
        except AnswerError as error:
            raise line_error(path, number, error) from None
    refuse_two_readings(name, numbers)


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
                    raise InputError.say("files.line_columns", file=name, line=reader.line_num)
                yield reader.line_num, cells
        except csv.Error:
            raise InputError.say("files.line_not_csv", file=name, line=reader.line_num) from None
    if not width:
        raise InputError.say("files.no_header", file=name)


def check_header(name: str, header: list[str], expected: list[str]) -> None:
    """Raise InputError unless the header of file `name` has exactly the expected columns, each once."""
    for column in expected:
        if column not in header:
            raise InputError.say(
                "files.column_missing", name=name, column=column, columns=", ".join(expected)
            )
    for column in header:
        if column not in expected:
            raise InputError.say("files.column_unknown", name=name, column=column[:64])
    for column in expected:
        if header.count(column) > 1:
            raise InputError.say("files.column_twice", name=name, column=column)


def all_columns(study: Study) -> list[str]:
    """Return the columns that hold a person's answers and public values."""
    private = [column for question in study.questions for column in columns_of(question)]
    return [*private, *[field.id for field in study.public]]


def columns_of(question: Question) -> list[str]:
    """Return the columns that hold one question's answer: its id, or `question.field` for a record."""
    if question.response is None:
        return [question.id]
    return [f"{question.id}.{field.id}" for field in question.fields]


def _number_columns(study: Study) -> list[str]:
    """Return the columns of a person's numbers, including public fields."""
    found = [field.id for field in study.public if not field.choices]
    for question in study.questions:
        if question.ask == "number":
            found.append(question.id)
        found += [
            column
            for field, column in zip(question.fields, columns_of(question))
            if field.bounds is not None and not field.choices
        ]
    return found


def refuse_two_readings(name: str, columns: dict[str, TwoReadings]) -> None:
    """Raise InputError for a column of file `name` whose points may be thousands separators."""
    for column in columns:
        if columns[column].first:
            raise InputError(f"{name}: {column}: {say('files.two_readings')}", code="files.two_readings")


def values_from_text(study: Study, texts: dict[str, str]) -> dict[str, Any]:
    """Return `answers_from_text` for one person: no other number shows what a point means.

    Raises AnswerError also for a number whose point may separate thousands.
    """
    for column in _number_columns(study):
        readings = TwoReadings(NO_VALUE)
        readings.look_at([texts.get(column, "")])
        if readings.first:
            raise AnswerError.say("files.two_readings", column)
    return answers_from_text(study, texts)


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
            answers[field.id] = texts[field.id] if field.choices else _unmarked(texts[field.id], field.id)
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
    plain = _unmarked(word, column)
    try:
        # Python reads 1_000 as a number. In a file it is a mistake.
        return float("" if "_" in plain else plain)
    except ValueError:
        raise AnswerError.say("core.number", column) from None


def _unmarked(text: str, column: str) -> str:
    """Strip spaces around a text. Raises AnswerError for a number with separated thousands."""
    if MARKED_THOUSANDS.fullmatch(text.strip()):
        raise AnswerError.say("files.thousands", column)
    return text.strip()
