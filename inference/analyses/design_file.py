"""Read "ldpkit.design/1": how reports in each private column of a survey depend on the true answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from inference.analyses.dice import NAMED, Channel, Rows
from ldp_client.documents.errors import InputError

FORMAT = "ldpkit.design/1"
MOST_ANSWERS = 1000
MOST_CARDS = 100
MOST_DIGITS = 100
NOT_GIVEN = object()
# Common words for no, and for yes.
NO_YES = (("no", "n", "false", "f", "0"), ("yes", "y", "true", "t", "1"))
_OPEN = "only one share may be unknown"


@dataclass(frozen=True)
class Part:
    """A channel and its rows: {column: value}, {} for all rows."""

    rows: Mapping[str, str]
    channel: Channel
    words: str


@dataclass(frozen=True)
class ColumnDesign:
    """One private column. reports: the labels in the table, in the order of the matrix."""

    name: str
    answers: tuple[str, ...]
    reports: tuple[str, ...]
    parts: tuple[Part, ...]
    ordered: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Return a warning if the matrix mostly pairs reports with answers of other names."""
        # If a matrix leaves a share open, its entries alone describe no real group of people.
        known = [part.channel.matrix for part in self.parts if not part.channel.unknown]
        if not any(_speaks_for_others(self.answers, self.reports, matrix) for matrix in known):
            return ()
        return (
            f"{self.name}: its matrix gives most reports another name than their answers. If that is wrong, "
            f"list reports in the order of its columns (now {', '.join(self.reports)}), and "
            f"answers in the order of its rows (now {', '.join(self.answers)})",
        )

    def in_words(self) -> list[str]:
        """Return the expanded design as readable lines."""
        lines = []
        for part in self.parts:
            which = ", ".join(f"{column} = {value}" for column, value in part.rows.items())
            lines.append(f"{self.name}{f' where {which}' if which else ''}: {part.words}")
            for answer, row, place in zip(
                self.answers, part.channel.matrix, range(len(self.answers)), strict=True
            ):
                chances = [
                    f"{report} {chance}" + "".join(
                        f" {'+' if moved[place][j] >= 0 else '-'} {abs(moved[place][j])} {share}"
                        for share, moved in part.channel.unknown.items() if moved[place][j]
                    )
                    for j, (report, chance) in enumerate(zip(self.reports, row, strict=True))
                ]  # fmt: skip
                lines.append(f"  answer {answer}: report {', '.join(chances)}")
        return lines


@dataclass(frozen=True)
class Design:
    """columns: the private columns. priors: as stated, None without any. document: as read."""

    columns: tuple[ColumnDesign, ...]
    priors: Any
    document: Mapping[str, Any]

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """Return {column: its labels}: a private column's reports, and values that select a matrix's rows."""
        found = {column.name: column.reports for column in self.columns}
        for column in self.columns:
            for part in column.parts:
                for name, value in part.rows.items():
                    found[name] = (*found.get(name, ()), value)
        return found

    def in_words(self) -> list[str]:
        """Return the expanded design as readable lines."""
        return [line for column in self.columns for line in column.in_words()]


def read_design(text: str | bytes) -> Design:
    """Read and expand a design document. Raises InputError that names the fault."""
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the design is not JSON: {error}", code="design.not_json") from None
    _members(document, "the design", ("format", "columns"), ("prior", "title"))
    if document["format"] != FORMAT:
        raise InputError(f"the design's format must be {FORMAT!r}", code="design.wrong_format")
    if not isinstance(document.get("title", ""), str):
        raise InputError("the design's title must be text", code="design.title_not_text")
    columns = document["columns"]
    if not isinstance(columns, dict) or not columns:
        raise InputError("the design's columns must be {column: its design}", code="design.no_columns_stated")
    return Design(tuple(_column(name, one) for name, one in columns.items()), document.get("prior"), document)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the design has {twice!r} twice in one object", code="design.repeated_member")
    return found


def _members(document: Any, where: str, needs: Sequence[str], may: Sequence[str] = ()) -> None:
    if not isinstance(document, dict):
        raise InputError(f"{where} must be an object, {{…}}", code="design.not_object")
    missing = [name for name in needs if name not in document]
    if missing:
        raise InputError(f"{where} lacks {missing[0]!r}", code="design.missing_member")
    other = [name for name in document if name not in (*needs, *may)]
    if other:
        raise InputError(
            f"{where} has {other[0]!r}, which is unknown there: it may have {', '.join([*needs, *may])}",
            code="design.unknown_member",
        )


def _column(name: str, document: Any) -> ColumnDesign:
    where = f"the design of {name}"
    if not isinstance(document, dict):
        raise InputError(f"{where} must be an object, {{…}}", code="design.column_not_object")
    common = ("answers", "reports", "ordered", "random", "denial")
    rest = {key: value for key, value in document.items() if key not in common}
    if "matrices" in rest:
        _members(rest, where, ("matrices",))
        stated = rest["matrices"]
        if not isinstance(stated, list) or not stated:
            raise InputError(
                f"{where}: matrices must be a list of matrices, each with its rows",
                code="design.matrices_not_list",
            )
        for one in stated:
            _members({"rows": None, **one} if isinstance(one, dict) else one, where, ("rows",), tuple(one))
            if "rows" not in one:
                raise InputError(
                    f'{where}: each of several matrices needs its rows, {{"column": value}}',
                    code="design.matrix_without_rows",
                )
    else:
        stated = [rest]
    answers = _labels(document.get("answers", NOT_GIVEN), f"{where}: answers")
    parts = [_part(where, one) for one in stated]
    answers = answers or _named_answers(stated) or _lacking(where, "answers")
    channels = [_told(where, document, part.channel) for part in parts]
    reports = _labels(document.get("reports", NOT_GIVEN), f"{where}: reports")
    if "matrix" not in stated[0]:
        _refuse_turned(where, answers, reports)
    reports = reports or (
        tuple(map(str, range(len(channels[0].matrix[0])))) if "matrix" not in stated[0] else ()
    )
    reports = reports or _lacking(where, "reports")
    for channel in channels:
        _check(where, channel, answers, reports)
    whole = tuple(Part(part.rows, channel, part.words) for part, channel in zip(parts, channels, strict=True))
    return ColumnDesign(name, answers, reports, whole, _boolean(f"{where}: ordered", document))


def _boolean(where: str, document: Mapping[str, Any]) -> bool:
    value = document.get("ordered", False)
    if not isinstance(value, bool):
        raise InputError(f"{where} must be true or false, without quotes", code="design.ordered_not_boolean")
    return value


def _refuse_turned(where: str, answers: Sequence[str], reports: Sequence[str]) -> None:
    """Raise InputError if a named design lists yes before no: its rows are no, then yes."""
    for labels, what in ((answers, "answers"), (reports, "reports")):
        told = [one.casefold() for one in labels]
        known = [place for place, both in enumerate(zip(*NO_YES, strict=True)) if set(told) == set(both)]
        if (known and told[0] in NO_YES[1]) or _falling(labels):
            raise InputError(
                f"{where}: {what} must list no first, then yes, as named designs do: "
                f"{', '.join(reversed(labels))}. The table may have them in any order",
                code="design.labels_reversed",
            )
    if reports and list(reports) != list(answers) and set(reports) == set(answers):
        raise InputError(
            f"{where}: reports are in another order than answers ({', '.join(answers)}): list them alike",
            code="design.reports_in_other_order",
        )


def _speaks_for_others(answers: Sequence[str], reports: Sequence[str], matrix: Rows) -> bool:
    """Return True if both sides have the same labels, but another pairing makes reports true more often."""
    told = [one.casefold() for one in reports]
    if sorted(told) != sorted(one.casefold() for one in answers):
        return False
    chances = np.asarray(matrix, np.float64)
    own = sum(chances[place, told.index(one.casefold())] for place, one in enumerate(answers))
    return bool(chances[linear_sum_assignment(chances, maximize=True)].sum() > own + 1e-9)


def _falling(labels: Sequence[str]) -> bool:
    """Return True if labels are numbers in another order: report j of a design is the number j."""
    try:
        numbers = [float(one) for one in labels]
    except ValueError:
        return False
    return numbers != sorted(numbers)


def _lacking(where: str, what: str) -> tuple[str, ...]:
    raise InputError(f"{where} lacks {what!r}", code="design.missing_labels")


def _named_answers(stated: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    name = str(stated[0].get("design"))
    return NAMED[name].answers if name in NAMED else ()


def _labels(value: Any, where: str) -> tuple[str, ...]:
    if value is NOT_GIVEN:
        return ()
    if not isinstance(value, list) or not 2 <= len(value) <= MOST_ANSWERS:
        raise InputError(
            f"{where} must be a list of 2 to {MOST_ANSWERS} labels", code="design.labels_not_list"
        )
    labels = tuple(one.strip() if isinstance(one, str) else str(one) for one in value)
    if not all(isinstance(one, str | int) and not isinstance(one, bool) for one in value) or "" in labels:
        raise InputError(f"{where} must be non-blank text", code="design.label_blank_or_not_text")
    if len(set(labels)) < len(labels):
        raise InputError(f"{where} has a label twice", code="design.duplicate_label")
    return labels


def _part(where: str, document: Mapping[str, Any]) -> Part:
    rows = document.get("rows", {})
    if not isinstance(rows, dict) or not all(isinstance(one, str | int | float) for one in rows.values()):
        raise InputError(f'{where}: rows must be {{"column": value}}', code="design.rows_not_object")
    own = {key: value for key, value in document.items() if key != "rows"}
    where_rows = {str(column): str(value) for column, value in rows.items()}
    if "matrix" in own:
        _members(own, where, ("matrix",))
        return Part(where_rows, Channel(_matrix(where, own["matrix"])), "a matrix")
    _members(own, where, ("design",), tuple(own))
    name = own.pop("design")
    if not isinstance(name, str) or name not in NAMED:
        raise InputError(
            f"{where}: {name!r} is an unknown design. Use {', '.join(NAMED)}, or state a matrix",
            code="design.unknown_design",
        )
    named = NAMED[name]
    _members(own, f"{where}: {name}", named.needs, named.may)
    numbers = {key: _probability(f"{where}: {key}", value, key == "cards") for key, value in own.items()}
    if numbers.get("yes", 0) + numbers.get("no", 0) > 1 and name == "forced":
        raise InputError(f"{where}: yes and no add up to more than 1", code="design.yes_and_no_above_one")
    said = ", ".join(f"{key} = {value}" for key, value in numbers.items())
    return Part(where_rows, named.expand(numbers), f"{name}, {said} ({named.words})")


def _matrix(where: str, value: Any) -> Rows:
    if not isinstance(value, list) or not all(isinstance(row, list) for row in value):
        raise InputError(
            f"{where}: matrix must be a list of lists, one for each answer", code="design.matrix_not_lists"
        )
    return tuple(tuple(_probability(f"{where}: matrix", one) for one in row) for row in value)


def _probability(where: str, value: Any, whole: bool = False) -> Fraction:
    """Read a decimal or a fraction in a string. Raises InputError for a JSON number, because it is binary."""
    if not isinstance(value, str):
        raise InputError(
            f'{where} must be a decimal or a fraction in quotes, such as "0.25" or "1/6"',
            code="design.number_not_in_quotes",
        )
    try:
        # A power of ten may be a number that exhausts memory.
        number = Fraction(value.strip() if len(value) <= MOST_DIGITS and "e" not in value.lower() else "")
    except (ValueError, ZeroDivisionError):
        raise InputError(
            f'{where} must be a decimal or a fraction, such as "0.25" or "1/6"',
            code="design.not_decimal_or_fraction",
        ) from None
    if whole and (number.denominator != 1 or not 1 <= number <= MOST_CARDS):
        raise InputError(
            f"{where} must be a whole number from 1 to {MOST_CARDS}", code="design.cards_out_of_range"
        )
    if not whole and not 0 <= number <= 1:
        raise InputError(f"{where} must be a probability, from 0 to 1", code="design.not_probability")
    return number


def _check(where: str, channel: Channel, answers: Sequence[str], reports: Sequence[str]) -> None:
    """Raise InputError if a matrix does not fit its labels, does not sum to 1, or is uninformative."""
    matrix = channel.matrix
    if len(matrix) != len(answers):
        raise InputError(
            f"{where}: the matrix has {len(matrix)} rows for {len(answers)} answers",
            code="design.wrong_row_count",
        )
    for answer, row in zip(answers, matrix, strict=True):
        if len(row) != len(reports):
            raise InputError(
                f"{where}: the row of {answer!r} has {len(row)} entries for {len(reports)} reports",
                code="design.wrong_row_length",
            )
        # Probabilities that only round to 1, such as three times 0.3333, must be stated as fractions.
        if sum(row) != 1:
            raise InputError(
                f"{where}: the row of {answer!r} adds up to {float(sum(row)):.6g}, not to 1: state fractions",
                code="design.row_sum_not_one",
            )
    if not channel.unknown and len(set(matrix)) == 1:
        raise InputError(
            f"{where}: every answer gives the same reports, so reports carry no information",
            code="design.all_rows_equal",
        )


def _told(where: str, document: Mapping[str, Any], channel: Channel) -> Channel:
    """Return the channel, mixed with stated shares of people who answer at random, and who deny."""
    for name, mixed in (("denial", _denied), ("random", _randomised)):
        if name not in document:
            continue
        value = document[name]
        if channel.unknown:
            raise InputError(
                f"{where}: {name} and another share are both unknown: {_OPEN}",
                code="design.two_shares_unknown",
            )
        other = mixed(channel.matrix)
        moved = _minus(other, channel.matrix)
        if value == "unknown":
            channel = Channel(channel.matrix, {name: moved})
        else:
            share = _probability(f"{where}: {name}", value)
            shifted = zip(channel.matrix, moved, strict=True)
            matrix = tuple(tuple(a + share * m for a, m in zip(row, by, strict=True)) for row, by in shifted)
            channel = Channel(matrix)
    return channel


def _minus(a: Rows, b: Rows) -> Rows:
    pairs = zip(a, b, strict=True)
    return tuple(tuple(x - y for x, y in zip(one, other, strict=True)) for one, other in pairs)


def _randomised(matrix: Rows) -> Rows:
    """Return the matrix of people who give each report with the same probability."""
    return tuple(tuple(Fraction(1, len(row)) for _ in row) for row in matrix)


def _denied(matrix: Rows) -> Rows:
    """Return the matrix of people who act as if their answer were the first."""
    return tuple(matrix[0] for _ in matrix)
