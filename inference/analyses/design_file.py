"""Read "ldpkit.design/1": how reports in each private column of a survey depend on the true answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from inference.analyses.dice import BEHAVIOURS, NAMED, Mixture, Rows, Share, mixed, split
from ldp_client.documents.errors import InputError

FORMAT = "ldpkit.design/1"
MOST_ANSWERS = 1000
MOST_CARDS = 100
MOST_DIGITS = 100
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
        """Return a warning if a known matrix mostly pairs reports with answers of other names."""
        reports = [one.casefold() for one in self.reports]
        own = [reports.index(one.casefold()) for one in self.answers if one.casefold() in reports]
        for part in self.parts:
            (matrix, *_) = part.mixture.leaves.values()
            likely = [row.index(max(row)) for row in matrix]
            if part.mixture.weights or len(own) < len(reports) or len(set(likely)) < len(likely):
                continue
            if likely != own:
                return (
                    f"{self.name}: its matrix gives most reports another name than their answers. If that is "
                    f"wrong, list reports in the order of its columns (now {', '.join(self.reports)}), and "
                    f"answers in the order of its rows (now {', '.join(self.answers)})",
                )
        return ()

    def in_words(self) -> list[str]:
        """Return the design as readable lines, with its matrix if that has no unknown weights."""
        lines = []
        for part in self.parts:
            which = ", ".join(f"{column} = {value}" for column, value in part.rows.items())
            lines.append(f"{self.name}{f' where {which}' if which else ''}: {part.words}")
            known = part.mixture.leaves[()] if not part.mixture.weights else ()
            for answer, row in zip(self.answers, known, strict=False):
                chances = [f"{report} {chance}" for report, chance in zip(self.reports, row, strict=True)]
                lines.append(f"  answer {answer}: report {', '.join(chances)}")
        return lines


@dataclass(frozen=True)
class Design:
    """columns: the private columns. priors: as stated, None without any. document: as read."""

    columns: tuple[ColumnDesign, ...]
    priors: Any
    document: Mapping[str, Any]

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


def _members(document: Any, where: str, needs: Sequence[str], may: Iterable[str] = ()) -> None:
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
    _members(document, where, (), document)
    rest = {key: value for key, value in document.items() if key not in ("answers", "reports", "ordered")}
    # 1. The design of all rows, or of each group; shares that are stated beside `matrices` are of all groups.
    stated, common = [{"rows": {}, **rest}], {}
    if "matrices" in rest:
        common = {key: rest.pop(key) for key in BEHAVIOURS if key in rest}
        _members(rest, where, ("matrices",))
        stated = rest["matrices"]
        if (
            not isinstance(stated, list)
            or not stated
            or not all(isinstance(one, dict) and "rows" in one for one in stated)
        ):
            raise InputError(
                f'{where}: matrices must be a list of matrices, each with its rows, {{"column": value}}',
                code="design.matrices_not_list",
            )
    parts = [_part(where, one, common) for one in stated]
    # 2. Labels: a named design has usual ones.
    answers = _labels(document, "answers", where)
    reports = _labels(document, "reports", where)
    if _is_named(stated[0]):
        answers = answers or ("no", "yes")
        _refuse_turned(where, answers, reports)
        reports = reports or tuple(map(str, range(parts[0].mixture.shape[1])))
    for what, labels in (("answers", answers), ("reports", reports)):
        if not labels:
            raise InputError(f"{where} lacks {what!r}", code="design.missing_labels")
    # 3. One law for all groups: weights of one name are the same, so they have the same branches.
    for part in parts:
        _check(where, part.mixture, answers, reports)
    with _refusing_names(where):
        mixed([part.mixture for part in parts], [Fraction(1)] * len(parts))
    ordered = document.get("ordered", False)
    if not isinstance(ordered, bool):
        raise InputError(
            f"{where}: ordered must be true or false, without quotes", code="design.ordered_not_boolean"
        )
    return ColumnDesign(name, answers, reports, tuple(parts), ordered)


def _refuse_turned(where: str, answers: Sequence[str], reports: Sequence[str]) -> None:
    """Raise InputError if a named design lists yes before no: its rows are no, then yes."""
    for labels, what in ((answers, "answers"), (reports, "reports")):
        lower = [one.casefold() for one in labels]
        if any(lower == [yes, no] for no, yes in zip(*NO_YES, strict=True)):
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


def _is_named(document: Mapping[str, Any]) -> bool:
    """Return True if a component has named designs alone. A stated matrix has labels of its own."""
    if "mixture" in document:
        return all(_is_named(one) for one in document["mixture"].values())
    return "design" in document


def _labels(document: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    """Return a list of labels, () without one. Raises InputError for labels that are blank or alike."""
    if name not in document:
        return ()
    value, where = document[name], f"{where}: {name}"
    texts = [str(one).strip() for one in value] if isinstance(value, list) else []
    known = all(isinstance(one, str | int) and not isinstance(one, bool) for one in value or ())
    labels = tuple(dict.fromkeys(text for text in texts if text))
    if not 2 <= len(labels) <= MOST_ANSWERS or len(labels) < len(texts) or not known:
        raise InputError(
            f"{where} must be a list of 2 to {MOST_ANSWERS} different labels, none blank",
            code="design.labels_invalid",
        )
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
    _members(document, where, (), document)
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
    stated = dict(document)
    name = stated.pop("design", None)
    if name is None or name not in NAMED:
        raise InputError(
            f"{where}: {name!r} is an unknown design. Use {', '.join(NAMED)}, or state a matrix or a mixture",
            code="design.unknown_design",
        )
    named = NAMED[name]
    _members(stated, f"{where}: {name}", named.needs, (*(["cards"] if named.cards else []), *named.shares))
    members: dict[str, Share] = {
        key: _probability(f"{where}: {key}", value, key == "cards")
        for key, value in stated.items()
        if key not in named.shares
    }
    members |= {key: _share(where, key, stated.get(key, UNKNOWN)) for key in named.shares}
    if name == "forced" and members["yes"] + members["no"] > 1:  # type: ignore[operator]
        raise InputError(f"{where}: yes and no add up to more than 1", code="design.yes_and_no_above_one")
    words = ", ".join(_said(key, value) for key, value in members.items())
    return named.expand(members), f"{name}, {words} ({named.words})"


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
    if (
        not isinstance(value, list)
        or not value
        or not all(isinstance(row, list) and len(row) == len(value[0]) for row in value)
    ):
        raise InputError(
            f"{where}: matrix must be a list of equally long lists, one for each answer",
            code="design.matrix_not_lists",
        )
    rows = tuple(tuple(_probability(f"{where}: matrix", one) for one in row) for row in value)
    for place, row in enumerate(rows, 1):
        # Probabilities that only round to 1, such as three times 0.3333, must be stated as fractions.
        if sum(row) != 1:
            raise InputError(
                f"{where}: row {place} adds up to {float(sum(row)):.6g}, not to 1: state fractions",
                code="design.row_sum_not_one",
            )
    return rows


def _probability(where: str, value: Any, whole: bool = False) -> Fraction:
    """Read a decimal or a fraction in a string. Raises InputError for a JSON number, because it is binary."""
    text = value.strip() if isinstance(value, str) and len(value) <= MOST_DIGITS else ""
    try:
        # A power of ten may be a number that exhausts memory.
        number = Fraction("" if "e" in text.lower() else text)
    except (ValueError, ZeroDivisionError):
        number = Fraction(-1)
    if whole and not (number.denominator == 1 and 1 <= number <= MOST_CARDS):
        raise InputError(
            f"{where} must be a whole number from 1 to {MOST_CARDS}, in quotes", code="design.not_cards"
        )
    if not whole and not 0 <= number <= 1:
        raise InputError(
            f'{where} must be a probability in quotes, a decimal or fraction such as "0.25" or "1/6"',
            code="design.not_probability",
        )
    return number


def _check(where: str, mixture: Mixture, answers: Sequence[str], reports: Sequence[str]) -> None:
    """Raise InputError if a design does not fit its labels, or is uninformative."""
    rows, columns = mixture.shape
    if (rows, columns) != (len(answers), len(reports)):
        raise InputError(
            f"{where}: the matrix has {rows} rows and {columns} columns, for {len(answers)} answers and "
            f"{len(reports)} reports",
            code="design.wrong_shape",
        )
    if all(len(set(matrix)) == 1 for matrix in mixture.leaves.values()):
        raise InputError(
            f"{where}: every answer gives the same reports, so reports carry no information",
            code="design.all_rows_equal",
        )
