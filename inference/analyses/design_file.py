"""Read "ldpkit.design/1": how reports in each private column of a survey depend on the true answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from inference.analyses.dice import BEHAVIOURS, NAMED, Mixture, Rows, Share, mixed, split
from ldp_client.documents.errors import InputError

FORMAT = "ldpkit.design/1"
MOST_ANSWERS = 1000
MOST_CARDS = 100
MOST_DIGITS = 100
NOT_GIVEN = object()
# Common words for no, and for yes.
NO_YES = (("no", "n", "false", "f", "0"), ("yes", "y", "true", "t", "1"))
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Part:
    """A mixture and its rows: {column: value}, {} for all rows."""

    rows: Mapping[str, str]
    mixture: Mixture
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
        # With unknown weights, no single matrix describes a real group of people.
        known = [part.mixture.leaves[()] for part in self.parts if not part.mixture.weights]
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
            for row, answer in enumerate(self.answers):
                chances = [
                    f"{report} {_in_words(part.mixture, row, place)}"
                    for place, report in enumerate(self.reports)
                ]
                lines.append(f"  answer {answer}: report {', '.join(chances)}")
        return lines


def _in_words(mixture: Mixture, answer: int, report: int) -> str:
    """Return P(report | answer) as a sum over the leaves, such as "5/6 (1 − denial) + denial"."""
    chances = {path: matrix[answer][report] for path, matrix in mixture.leaves.items()}
    # 1. Branches with the same chance are one, as their weights add up to 1.
    for name, labels in mixture.weights.items():
        for path in [path for path in chances if (name, 0) in path]:
            rest = tuple(step for step in path if step != (name, 0))
            branches = [tuple(sorted((*rest, (name, place)))) for place in range(len(labels) or 2)]
            if all(chances.get(branch) == chances[path] for branch in branches):
                chances[rest] = chances.get(rest, 0) + chances[path]
                chances = {one: chance for one, chance in chances.items() if one not in branches}
    # 2. The other branches are terms.
    terms = []
    for path, chance in sorted(chances.items()):
        each = [(name, branch, mixture.weights[name]) for name, branch in path]
        factors = [
            f"{name}[{labels[branch]}]" if labels else f"(1 − {name})" if branch else name
            for name, branch, labels in each
        ]
        if chance:
            terms.append(" ".join([*([str(chance)] if chance != 1 or not path else []), *factors]))
    return " + ".join(terms) or "0"


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
    rest = {key: value for key, value in document.items() if key not in ("answers", "reports", "ordered")}
    # 1. The design of all rows, or of each group; shares that are stated beside `matrices` are of all groups.
    stated, common = [{"rows": {}, **rest}], {}
    if "matrices" in rest:
        common = {key: rest.pop(key) for key in BEHAVIOURS if key in rest}
        _members(rest, where, ("matrices",))
        stated = rest["matrices"]
        if not isinstance(stated, list) or not stated:
            raise InputError(
                f"{where}: matrices must be a list of matrices, each with its rows",
                code="design.matrices_not_list",
            )
        for one in stated:
            if not isinstance(one, dict) or "rows" not in one:
                raise InputError(
                    f'{where}: each of several matrices needs its rows, {{"column": value}}',
                    code="design.matrix_without_rows",
                )
    parts = [_part(where, one, common) for one in stated]
    # 2. Labels: a named design has usual ones.
    answers = _labels(document.get("answers", NOT_GIVEN), f"{where}: answers")
    reports = _labels(document.get("reports", NOT_GIVEN), f"{where}: reports")
    if _is_named(stated[0]):
        answers = answers or ("no", "yes")
        _refuse_turned(where, answers, reports)
        reports = reports or tuple(map(str, range(parts[0].mixture.shape[1])))
    answers = answers or _lacking(where, "answers")
    reports = reports or _lacking(where, "reports")
    # 3. One law for all groups: weights of one name are the same, so they have the same branches.
    for part in parts:
        _check(where, part.mixture, answers, reports)
    with _refusing_names(where):
        mixed([part.mixture for part in parts], [Fraction(1)] * len(parts))
    return ColumnDesign(name, answers, reports, tuple(parts), _boolean(f"{where}: ordered", document))


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


def _is_named(document: Mapping[str, Any]) -> bool:
    """Return True if a component has named designs alone. A stated matrix has labels of its own."""
    if "mixture" in document:
        return all(_is_named(one) for one in document["mixture"].values())
    return "design" in document


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


def _part(where: str, document: Mapping[str, Any], common: Mapping[str, Any]) -> Part:
    """Read a group's rows and its design. common: shares of people in all groups, {behaviour: share}."""
    rows = document["rows"]
    if not isinstance(rows, dict) or not all(isinstance(one, str | int | float) for one in rows.values()):
        raise InputError(f'{where}: rows must be {{"column": value}}', code="design.rows_not_object")
    own = {key: value for key, value in document.items() if key != "rows"}
    mixture, words = _behaving(where, common, *_component(where, own))
    return Part({str(column): str(value) for column, value in rows.items()}, mixture, words)


def _component(where: str, document: Any) -> tuple[Mixture, str]:
    """Read a matrix, a named design or a mixture, with the people who behave otherwise, and describe it."""
    if not isinstance(document, dict):
        raise InputError(f"{where} must be an object, {{…}}", code="design.not_object")
    own = {key: value for key, value in document.items() if key not in BEHAVIOURS}
    if "matrix" in own:
        _members(own, where, ("matrix",))
        found = Mixture.of(_matrix(where, own["matrix"])), "a matrix"
    elif "mixture" in own:
        found = _mixture(where, own)
    else:
        found = _named(where, own)
    return _behaving(where, {key: document[key] for key in BEHAVIOURS if key in document}, *found)


def _mixture(where: str, document: Mapping[str, Any]) -> tuple[Mixture, str]:
    _members(document, where, ("mixture", "weights"))
    branches, weights = document["mixture"], document["weights"]
    if not isinstance(branches, dict) or len(branches) < 2:
        raise InputError(
            f"{where}: mixture must be two or more designs by name, {{name: design}}",
            code="design.mixture_not_named",
        )
    labels = tuple(branches)
    parts = [_component(f"{where}: {label}", one) for label, one in branches.items()]
    if len({part.shape for part, _ in parts}) > 1:
        raise InputError(
            f"{where}: the designs of a mixture must have as many answers and reports each",
            code="design.mixture_of_other_sizes",
        )
    each: list[Fraction] | str
    if weights == UNKNOWN or (isinstance(weights, dict) and list(weights) == [UNKNOWN]):
        each = _unknown(where, "weights", weights)
    else:
        _members(weights, f"{where}: weights", labels)
        each = [_probability(f"{where}: the weight of {label}", weights[label]) for label in labels]
        if sum(each) != 1:
            raise InputError(
                f"{where}: its weights add up to {float(sum(each)):.6g}, not to 1: state fractions",
                code="design.weights_sum_not_one",
            )
    with _refusing_names(where):
        mixture = mixed([part for part, _ in parts], each, labels)
    known = {} if isinstance(each, str) else dict(zip(labels, each, strict=True))
    said = ", ".join(_said(label, weight) for label, weight in known.items())
    said = said or f"{', '.join(labels)} with {_said('weights', str(each))}"
    return mixture, f"a mixture of {said}"


def _named(where: str, document: Mapping[str, Any]) -> tuple[Mixture, str]:
    own = dict(document)
    _members(own, where, ("design",), tuple(own))
    name = own.pop("design")
    if not isinstance(name, str) or name not in NAMED:
        raise InputError(
            f"{where}: {name!r} is an unknown design. Use {', '.join(NAMED)}, or state a matrix",
            code="design.unknown_design",
        )
    named = NAMED[name]
    _members(own, f"{where}: {name}", named.needs, (*named.may, *named.shares))
    shares = {key: _share(where, key, own.pop(key, UNKNOWN)) for key in named.shares}
    numbers = {key: _probability(f"{where}: {key}", value, key == "cards") for key, value in own.items()}
    if numbers.get("yes", 0) + numbers.get("no", 0) > 1 and name == "forced":
        raise InputError(f"{where}: yes and no add up to more than 1", code="design.yes_and_no_above_one")
    said = ", ".join(_said(key, value) for key, value in {**numbers, **shares}.items())
    return named.expand(numbers, shares), f"{name}, {said} ({named.words})"


def _behaving(where: str, stated: Mapping[str, Any], dice: Mixture, words: str) -> tuple[Mixture, str]:
    """Mix a design with the people who deny, say no or answer at random instead."""
    for name, behave in BEHAVIOURS.items():
        if name in stated:
            share = _share(where, name, stated[name])
            with _refusing_names(where):
                dice = split(share, behave(dice), dice)
            words = f"{words}, {_said(name, share)}"
    return dice, words


def _share(where: str, key: str, value: Any) -> Share:
    """Read a known share, or the name of an unknown one."""
    if value == UNKNOWN or isinstance(value, dict):
        return _unknown(where, key, value)
    return _probability(f"{where}: {key}", value)


def _said(key: str, share: Share) -> str:
    """Describe a share: its number, or the name of an unknown one."""
    if not isinstance(share, str):
        return f"{key} = {share}"
    return f"{key} {UNKNOWN}" if share == key else f"{key} {UNKNOWN}, called {share}"


def _unknown(where: str, key: str, value: Any) -> str:
    """Return the name of unknown weights: "unknown" has the member's, {"unknown": name} its own."""
    if value == UNKNOWN:
        return key
    _members(value, f"{where}: {key}", (UNKNOWN,))
    name = value[UNKNOWN]
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(
            f"{where}: {key}: the name of an unknown share must be of letters, digits and _, not {name!r}",
            code="design.share_name_invalid",
        )
    return name


@contextmanager
def _refusing_names(where: str) -> Iterator[None]:
    """Raise InputError if unknown weights are inside themselves, or have other branches elsewhere."""
    try:
        yield
    except ValueError as error:
        raise InputError(
            f'{where}: two unknown shares are called {error}: give one another name, {{"unknown": name}}',
            code="design.share_name_taken",
        ) from None


def _matrix(where: str, value: Any) -> Rows:
    if not isinstance(value, list) or not value or not all(isinstance(row, list) for row in value):
        raise InputError(
            f"{where}: matrix must be a list of lists, one for each answer", code="design.matrix_not_lists"
        )
    rows = tuple(tuple(_probability(f"{where}: matrix", one) for one in row) for row in value)
    for place, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise InputError(
                f"{where}: row {place} of the matrix has {len(row)} entries, row 1 {len(rows[0])}",
                code="design.unequal_rows",
            )
        # Probabilities that only round to 1, such as three times 0.3333, must be stated as fractions.
        if sum(row) != 1:
            raise InputError(
                f"{where}: row {place} adds up to {float(sum(row)):.6g}, not to 1: state fractions",
                code="design.row_sum_not_one",
            )
    return rows


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


def _check(where: str, mixture: Mixture, answers: Sequence[str], reports: Sequence[str]) -> None:
    """Raise InputError if a design does not fit its labels, or is uninformative."""
    rows, columns = mixture.shape
    if rows != len(answers):
        raise InputError(
            f"{where}: the matrix has {rows} rows for {len(answers)} answers", code="design.wrong_row_count"
        )
    if columns != len(reports):
        raise InputError(
            f"{where}: the matrix has {columns} columns for {len(reports)} reports",
            code="design.wrong_row_length",
        )
    if all(len(set(matrix)) == 1 for matrix in mixture.leaves.values()):
        raise InputError(
            f"{where}: every answer gives the same reports, so reports carry no information",
            code="design.all_rows_equal",
        )
